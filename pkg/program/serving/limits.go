package serving

import "time"

// Limits bound what the clients of one server use of the program. Whoever reaches its port is a client.
type Limits struct {
	// Connections is the largest number of open connections.
	Connections int
	// Header is the size of the largest header of a request, in bytes: 4 KiB or more. Body is that of the largest body, and
	// Bodies that of all bodies of requests that are not answered yet.
	Header, Body, Bodies int
	// Answers is the number of answers that are computed at a time; 0 for any number.
	Answers int
	// HeaderTime is how long a TLS handshake may take, and the header of a request. RequestTime is how long header and body
	// may take together, and IdleTime how long a connection may be kept without a request.
	HeaderTime, RequestTime, IdleTime time.Duration
	// AnswerTime is how long body and answer may take together; 0 for any time.
	AnswerTime time.Duration
}

// withoutBodies are the limits of a server whose requests have no bodies. Its clients are probes and scrapers.
func withoutBodies() Limits {
	return Limits{Connections: 64, Header: 12 << 10, HeaderTime: 5 * time.Second, RequestTime: 10 * time.Second,
		IdleTime: 2 * time.Minute, AnswerTime: 30 * time.Second}
}

// ForWebhooks returns the limits of a server of webhooks whose largest request has so many bytes. An API server opens a
// connection for each request that it sends at the same time, and keeps 25 of them for 90 s.
func ForWebhooks(largest int) Limits {
	l := withoutBodies()
	l.Connections, l.Header, l.Body, l.Bodies, l.Answers = 512, 4<<10, largest, largest+1<<20, 2
	return l
}
