package bridge

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentteammail/atm/wire"
)

// natsServer is the transport over NATS JetStream.
//
//	stream atm_<team>        subject atm.<team>.mail.<host>; a durable consumer named by each host
//	objects atm_<team>_files large contents and attachments, named by their SHA-256
//	keys atm_<team>          lease.<host>: the bridge that runs as a host; rows.<host>: the states of its members
type natsServer struct {
	*Bridge
	url      string // of the server; of several, with commas between
	creds    string // a file of credentials; "": none
	replicas int    // of each store made on the server; 0: one

	conn          *nats.Conn
	js            jetstream.JetStream
	consumer      jetstream.Consumer
	files         jetstream.ObjectStore
	bucket        jetstream.KeyValue
	runID         wire.ID // of this process, in the lease
	leaseRevision uint64  // 0: we do not hold the lease
	room          room
}

// ThroughServer makes the bridge one over a NATS server.
func (b *Bridge) ThroughServer(url, creds string, replicas int) {
	b.way = &natsServer{Bridge: b, url: url, creds: creds, replicas: replicas}
}

var credentials = regexp.MustCompile(`//[^/@,]*@`)

// String is the server's URL without a password.
func (s *natsServer) String() string { return credentials.ReplaceAllString(s.url, "//") }

// connect connects to the server, unless it is connected, makes the team's stores there, and takes the lease.
func (s *natsServer) connect(ctx context.Context) (err error) {
	if s.conn == nil || s.conn.IsClosed() {
		options := []nats.Option{
			nats.Name("atm bridge " + string(s.Host)), nats.MaxReconnects(-1),
			nats.PingInterval(renewEvery), // a connection that died silently is noticed after three of them
			nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
				if err != nil {
					s.warn("lost the connection to %s: %v; mail waits in the outbox", s, err)
				}
			}),
			nats.ReconnectHandler(func(*nats.Conn) {
				s.warn("reconnected to %s", s)
				for range cap(s.reconnected) - len(s.reconnected) {
					s.reconnected <- struct{}{}
				}
			}),
		}
		if s.creds != "" {
			options = append(options, nats.UserCredentials(s.creds))
		}
		if s.conn, err = nats.Connect(s.url, options...); err != nil {
			return fmt.Errorf("connect to %s: %w", s, explain(err))
		}
		if s.js, err = jetstream.New(s.conn, jetstream.WithDefaultTimeout(apiTimeout), jetstream.WithPublishAsyncTimeout(apiTimeout)); err != nil {
			return err
		}
	}
	isFirst := s.leaseRevision == 0 && s.isContinuous
	if err = s.openStores(ctx); err == nil {
		err = s.takeLease(ctx)
	}
	if _, isHeld := errors.AsType[*LeaseError](err); err != nil && !isHeld && ctx.Err() == nil {
		err = explain(err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	if isFirst {
		s.warn("connected to %s", s)
	}
	if !s.isContinuous {
		s.unfinished.Store(int32(s.consumer.CachedInfo().NumAckPending)) // of earlier runs
	}
	return nil
}

func (s *natsServer) close() {
	if s.conn == nil {
		return
	}
	if s.conn.IsConnected() {
		s.releaseLease()
		s.conn.FlushTimeout(apiTimeout)
	}
	s.conn.Close()
}

// openStores opens the team's stores on the server, and makes those that are missing. Existing ones keep their
// settings.
func (s *natsServer) openStores(ctx context.Context) error {
	name, replicas := s.stream(), max(1, s.replicas)
	_, err := s.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = s.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: name, Subjects: []string{s.subject("*")}, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew,
			Storage: jetstream.FileStorage, Replicas: replicas,
		})
	}
	if err == nil {
		s.consumer, err = s.js.Consumer(ctx, name, string(s.Host))
	}
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		s.consumer, err = s.js.CreateConsumer(ctx, name, jetstream.ConsumerConfig{
			Durable: string(s.Host), FilterSubject: s.subject(s.Host), AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: ackWait, MaxAckPending: 10 * batchSize, MaxDeliver: -1,
		})
	}
	if err == nil {
		s.files, err = s.js.ObjectStore(ctx, name+"_files")
	}
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		s.files, err = s.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: name + "_files", Replicas: replicas})
	}
	if err == nil {
		s.bucket, err = s.js.KeyValue(ctx, name)
	}
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		s.bucket, err = s.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name, Replicas: replicas})
	}
	if err != nil {
		return fmt.Errorf("open the stream %s and its buckets: %w", name, err)
	}
	return nil
}

// The names of a team on the server. A name of atm's needs no encoding in a subject.
func (s *natsServer) stream() string { return "atm_" + string(s.Team.Name) }
func (s *natsServer) subject(host wire.Name) string {
	return string("atm." + s.Team.Name + ".mail." + host)
}

func (s *natsServer) keep(ctx context.Context) error { return s.takeLease(ctx) }
func (s *natsServer) beginPass()                     { s.room.next() }

func (s *natsServer) maxInline() int {
	return min(maxInline, int(s.conn.MaxPayload())-2*maxHeader)
}

// publish publishes an envelope. acked waits until the server has stored it.
func (s *natsServer) publish(ctx context.Context, e *Envelope, data []byte) (acked func() error) {
	var err error
	if e.Object {
		err = s.putObject(ctx, e.SHA256, bytes.NewReader(e.Content))
	}
	if err == nil {
		err = s.reserve(ctx, e.ToHost, len(data)+overhead)
	}
	if err != nil {
		return func() error { return s.explainLimit(err) }
	}
	ack, err := s.js.PublishMsgAsync(&nats.Msg{Subject: s.subject(e.ToHost), Data: data},
		jetstream.WithMsgID(string(e.ID)+"/"+string(e.ToHost)+"/"+e.SHA256), jetstream.WithExpectStream(s.stream()))
	return func() error {
		defer s.room.settle(len(data) + overhead)
		if err != nil {
			return s.explainLimit(err)
		}
		select {
		case <-ack.Ok():
			return nil
		case err := <-ack.Err():
			return s.explainLimit(err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// explainLimit rewords the server's error for a stream or bucket that is full or takes no such message.
func (s *natsServer) explainLimit(err error) error {
	api, ok := errors.AsType[*jetstream.APIError](err)
	switch {
	case !ok:
		return err
	case strings.HasPrefix(api.Description, "maximum "):
		return fmt.Errorf("%s is full on the server (%s): the message waits in the outbox", s.stream(), api.Description)
	}
	return fmt.Errorf("%s does not take it on the server (%s): the message waits in the outbox", s.stream(), api.Description)
}

func (s *natsServer) offer(ctx context.Context, sha256 string, open func() (io.ReadCloser, error)) error {
	content, err := open()
	if err != nil {
		return err
	}
	defer content.Close()
	return s.putObject(ctx, sha256, content)
}

// putObject stores content under its SHA-256, unless the store has it whole. A Put that failed may have left the name
// without its chunks, and anybody may have stored something else under it.
func (s *natsServer) putObject(ctx context.Context, sha256 string, content io.Reader) error {
	info, err := s.files.GetInfo(ctx, sha256)
	if err == nil && s.isStored(ctx, info, sha256) {
		return nil
	}
	if err == nil || errors.Is(err, jetstream.ErrObjectNotFound) {
		_, err = s.files.Put(ctx, jetstream.ObjectMeta{Name: sha256}, content)
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", sha256, s.explainLimit(err))
	}
	return nil
}

func (s *natsServer) isStored(ctx context.Context, info *jetstream.ObjectInfo, sha256 string) bool {
	subject, state := "$O."+info.Bucket+".C."+info.NUID, &jetstream.StreamInfo{}
	stream, err := s.js.Stream(ctx, "OBJ_"+info.Bucket)
	if err == nil {
		state, err = stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	}
	sum, _ := jetstream.DecodeObjectDigest(info.Digest)
	return err == nil && state.State.Subjects[subject] == uint64(info.Chunks) && hex.EncodeToString(sum) == sha256
}

func (s *natsServer) object(ctx context.Context, sha256 string) (io.ReadCloser, error) {
	return s.files.Get(ctx, sha256)
}

// receive hands over up to batchSize envelopes, each group of them as soon as it has come.
func (s *natsServer) receive(ctx context.Context, handle func([]delivery)) (n int, err error) {
	limited, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	var received jetstream.MessageBatch
	if s.isContinuous {
		received, err = s.consumer.Fetch(batchSize, jetstream.FetchContext(limited))
	} else {
		received, err = s.consumer.FetchNoWait(batchSize)
	}
	if err != nil {
		return 0, err
	}
	for m := range received.Messages() {
		group := []delivery{fromServer{m}}
		for range len(received.Messages()) {
			group = append(group, fromServer{<-received.Messages()})
		}
		handle(group)
		n += len(group)
	}
	if err = received.Error(); errors.Is(err, context.DeadlineExceeded) {
		return n, nil // nothing more has come
	}
	return n, err
}

// fromServer is a delivery that the server repeats until it is accepted.
type fromServer struct{ jetstream.Msg }

func (m fromServer) meta() (tries uint64, stored time.Time) {
	if metadata, err := m.Metadata(); err == nil {
		return metadata.NumDelivered, metadata.Timestamp
	}
	return 1, time.Time{}
}

func (m fromServer) accept() error                             { return m.Ack() }
func (m fromServer) refuse(_ error, delay time.Duration) error { return m.NakWithDelay(delay) }

func (s *natsServer) publishRows(ctx context.Context, data []byte) error {
	_, err := s.bucket.Put(ctx, rowsKey(s.Host), data)
	return err
}

// receiveRows saves the rows of other hosts, and under Run also those that come within clockEvery. Their age counts
// from when the server stored them, converted to our clock.
func (s *natsServer) receiveRows(ctx context.Context) error {
	began := time.Now()
	now, err := s.serverTime(ctx)
	if err != nil {
		return err
	}
	ahead := now.Sub(began)
	w, err := s.bucket.Watch(ctx, "rows.*", jetstream.IgnoreDeletes())
	if err != nil {
		return fmt.Errorf("receive rows: %w", err)
	}
	defer w.Stop()
	for timeout := time.After(clockEvery); ; {
		select {
		case entry, ok := <-w.Updates():
			switch {
			case !ok:
				return errors.New("receive rows: the subscription ended")
			case entry == nil && !s.isContinuous: // these were all
				return nil
			case entry == nil || entry.Key() == rowsKey(s.Host):
				continue
			}
			s.saveRows(entry.Key(), entry.Value(), entry.Created().Add(-ahead))
		case <-timeout:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
