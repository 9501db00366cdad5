package lease

import (
	"net"
	"syscall"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/require"
)

func TestWhatIsNotDeliveredInTimeIsNotSentAgain(t *testing.T) {
	address, _ := arrivals(t)
	conn, err := newTerm(defaultTimes().actFor()).dial(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	raw, err := conn.(*termConn).Conn.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
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
