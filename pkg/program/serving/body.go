package serving

import (
	"io"
	"net"
	"net/http"
	"time"
)

// chunk is a part of a body. Bodies grow by chunks as they arrive, so that a client cannot take memory just by
// announcing a large body in its header.
type chunk [8 << 10]byte

// receive reads the body of the request, replaces it with a copy in memory, and returns its size.
func (l *limiter) receive(c *connection, req *http.Request) (size int, err error) {
	if req.ContentLength == 0 {
		return 0, l.received(c, req, 0)
	}
	if l.limits.Body == 0 || req.ContentLength > int64(l.limits.Body) {
		return 0, errTooLarge
	}
	var room []byte // the rest of the last chunk
	for {
		if len(room) == 0 {
			next, err := l.grow(c)
			if err != nil {
				return 0, err
			}
			room = next[:]
		}
		n, err := req.Body.Read(room)
		room = room[n:]
		if size += n; size > l.limits.Body {
			return 0, errTooLarge
		}
		if err == io.EOF {
			return size, l.received(c, req, len(room))
		}
		if err != nil {
			return 0, l.why(c, err)
		}
	}
}

// grow gives the connection another chunk. If none is left, slower connections lose theirs.
func (l *limiter) grow(c *connection) (*chunk, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !c.cut && (l.chunks+1)*len(chunk{}) > l.limits.Bodies {
		loser := l.slowest(func(o *connection) bool { return len(o.chunks) > 0 })
		if loser == nil || loser == c {
			return nil, errBusy
		}
		// Its handler may be reading into the last chunk, so that one is not reused. The handler ends immediately.
		last := len(loser.chunks) - 1
		loser.chunks, l.chunks = loser.chunks[:last], l.chunks-1
		l.free(loser)
		loser.cut = true
		_ = loser.SetReadDeadline(longAgo)
	}
	if c.cut {
		return nil, errBusy
	}
	next := l.pool.Get().(*chunk)
	c.chunks = append(c.chunks, next)
	l.chunks++
	return next, nil
}

// free returns the chunks of the connection to the pool.
func (l *limiter) free(c *connection) {
	for _, one := range c.chunks {
		l.pool.Put(one)
	}
	l.chunks -= len(c.chunks)
	c.chunks = nil
}

// received records that the request is complete, and clears the read deadline, which was for the client. rest is the
// size of the unused part of the last chunk.
func (l *limiter) received(c *connection, req *http.Request, rest int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.cut {
		return errBusy
	}
	c.answering = true
	body := make(net.Buffers, len(c.chunks))
	for i, one := range c.chunks {
		body[i] = one[:]
	}
	if last := len(body) - 1; last >= 0 {
		body[last] = body[last][:len(chunk{})-rest]
	}
	req.Body = io.NopCloser(&body)
	return c.SetReadDeadline(time.Time{})
}

// why returns why a body was not read.
func (l *limiter) why(c *connection, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.cut {
		return errBusy
	}
	return err
}
