package serving

import "time"

// Limits bound the resources that clients of a server can use. Anyone who reaches its port is a client.
type Limits struct {
	// Connections is the maximum number of open connections.
	Connections int
	// Header is the maximum size of a request's header, in bytes: 4 KiB or more. Body is the maximum size of a body,
	// and Bodies the maximum total size of the bodies of all unanswered requests.
	Header, Body, Bodies int
	// Answers is the maximum number of answers that are computed at the same time; 0 for no limit.
	Answers int
	// HeaderTime is the maximum time for a TLS handshake, and for the header of a request. RequestTime is the maximum
	// for header and body together, and IdleTime for a connection without a request.
	HeaderTime, RequestTime, IdleTime time.Duration
	// AnswerTime is the maximum time for body and answer together; 0 for no limit.
	AnswerTime time.Duration
}

// withoutBodies are the limits of a server whose requests have no bodies. Its clients are probes and scrapers.
func withoutBodies() Limits {
	return Limits{Connections: 64, Header: 12 << 10, HeaderTime: 5 * time.Second, RequestTime: 10 * time.Second,
		IdleTime: 2 * time.Minute, AnswerTime: 30 * time.Second}
}

// ForPages returns the limits of a server of pages; largest is the size of its largest request in bytes. Its client is
// a proxy, with a connection for each request and each stream. Tokens make headers large.
func ForPages(largest int) Limits {
	l := withoutBodies()
	l.Connections, l.Header, l.Body, l.Bodies, l.AnswerTime = 1024, 64<<10, largest, 16*largest, time.Minute
	return l
}

// ForWebhooks returns the limits of a webhook server; largest is the size of its largest request in bytes. An API
// server opens a connection for each concurrent request, and keeps 25 of them for 90 s.
func ForWebhooks(largest int) Limits {
	l := withoutBodies()
	l.Connections, l.Header, l.Body, l.Bodies, l.Answers = 512, 4<<10, largest, largest+1<<20, 2
	return l
}
