package digest

// nibbles are the remainders of the sixteen values of four bits, by the reversed
// polynomial of IEEE 802.3.
var nibbles = [16]uint32{
	0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
	0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
}

// CRC32 is the IEEE CRC-32 of data, that of gzip and Ethernet.
func CRC32(data []byte) uint32 {
	crc := ^uint32(0)
	for _, b := range data {
		crc ^= uint32(b)
		crc = crc>>4 ^ nibbles[crc&15]
		crc = crc>>4 ^ nibbles[crc&15]
	}
	return ^crc
}
