// Package crashtest breaks the built command and looks at what is left: only
// tests, and none of the project's own packages, so that a mistake in those
// cannot hide itself. It builds atm once, runs it as processes, kills them, cuts
// the power and makes system calls fail.
//
// What was promised is kept in a ledger, from what the processes printed; what
// is there is counted by a census of the directories; a verdict compares them:
//
//   - An id that was printed is in the recipient's mailbox, once, whole: in new,
//     cur, done, withdrawn or the archive, there or in a retired tree.
//   - What was not printed is whole or absent.
//   - A dropped file is one message, or one event, or one bad file.
//   - A message that was marked as read was read: its text came out of the pipe
//     of some reader.
//   - A debt is cleared only when the ack is with the sender.
//
// TestStress runs always: five seconds in memory, or as long as ATM_STRESS says,
// half of it on the disk (ATM_STRESS_DIR names a place). The others need root or
// strace, and are asked for:
//
//	ATM_POWERCUT=1  the shutdown ioctl on loop-mounted ext4 and xfs
//	                (ATM_POWERCUT_CYCLES=20 on each)
//	ATM_FAULTS=1    strace -e inject at every call of every command; too few
//	                descriptors; full, inode-less and read-only disks
//
// ATM_BINARY names a command that is built already, such as one with -race.
package crashtest
