package lease

import (
	"net"
	"syscall"
	"testing"
	"time"
)

func TestWhatIsNotDeliveredInTimeIsNotSentAgain(t *testing.T) {
	address, _ := arrivals(t)
	conn, err := newTerm(defaultTimes().actFor()).dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*termConn).Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var limit int
	var failed error
	if err := raw.Control(func(fd uintptr) {
		limit, failed = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout)
	}); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if got := time.Duration(limit) * time.Millisecond; got != writeTimeout {
		t.Errorf("the connection breaks after %v, want %v", got, writeTimeout)
	}
}
