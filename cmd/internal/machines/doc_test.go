// Package machines proves that nothing is lost between machines: only tests, and none of the project's
// own packages, so that a mistake in those cannot hide itself. It builds atm, atm-more and the real
// nats-server, and runs them as processes: a cluster of servers with JetStream, and three hosts of one
// team, each with a root, keys and a bridge of its own, and a proxy between it and the servers.
//
// While mail goes between all of them, bridges, servers and senders are killed, hosts are cut off from the servers and
// servers from each other, one's disk is full for a time, and so is the stream. Then everything is left alone until it
// is quiet, and every mailbox is looked at:
//
//   - A message that `atm send` said it sent is in the mailbox of each recipient, once, with the same
//     text and the same attachments, and its addresses are those of that host.
//   - An ack that `atm ack` said it sent is with the sender, once.
//   - The sender's log has the stage "stored" of each recipient elsewhere, and no stage twice.
//   - No outbox holds anything, and nothing lies in bad.
//
// TestSSH does the same to two hosts without a server, whose bridges speak over ssh.
//
// TestMachines runs always, with one server and few messages. ATM_MACHINES=60s asks for a cluster of
// three and 5,000 messages in that time, and for TestSpeed, which compares the bridge with bare
// JetStream: `make machines`. ATM_MACHINES_SEED repeats the choices of another run. A disk can be full
// only where root may mount one.
package machines
