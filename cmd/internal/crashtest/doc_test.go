// Package crashtest breaks the built command and looks at what is left: only tests, and none of the
// project's own packages but the one that builds it, so that a mistake in those cannot hide itself. It builds atm once, runs it
// as processes, kills them, cuts the power and makes system calls fail.
//
// A record keeps what the processes printed; a census counts what is in the directories; the verdict
// compares them:
//
//   - An id that was printed is in the recipient's mailbox, once, whole: in new, cur, done, withdrawn
//     or the archive, there or in a retired tree. What was not printed is whole or absent.
//   - A dropped file is one message, or one event, or one bad file. A large one takes its size once.
//   - A message that was marked as read was read: its text came out of the pipe of some reader.
//   - What asked for an ack is done only when the ack is with the sender.
//   - An event that a process said is in is in the log, once, under its number; no number is missing.
//     A power cut takes the end of a log at most, and nothing that was synced, nor what is before it.
//   - A hook exits with 0 and prints nothing or one whole document, whatever went wrong. It hands a
//     message over once, and once more only marked; what is moved came out of its pipe. No claim stays.
//   - After `atm down` nothing that `atm up` started runs, and no agent ever ran twice at a time,
//     whoever was killed.
//   - A message of a shared inbox is one taker's for as long as the lease lasts, whoever was killed;
//     one that was given out before says so.
//   - What is said of an agent stands in its events: without state.json, with a bad one, and with old
//     events in the archive, it is the same.
//
// TestStress, TestStressHooks, TestStressTake, TestStressUpDown and TestStressLargeDrops run always, for some seconds in
// memory, or as long as ATM_STRESS says, half of it on the disk (ATM_STRESS_DIR names a place). The
// others need root or strace, and are asked for:
//
//	ATM_POWERCUT=1  the shutdown ioctl on loop-mounted ext4 and xfs
//	                (ATM_POWERCUT_CYCLES=20 on each)
//	ATM_FAULTS=1    strace -e inject at every call of every command; gc between
//	                any two calls of status; too few descriptors; full, inode-less
//	                and read-only disks
//
// ATM_BINARY names a command that is built already, such as one with -race.
package crashtest
