package freeport

import (
	"net"
	"testing"

	"kube-queue.dev/kube-queue/test/require"
)

// Each port is given once, to whoever asks in whatever way, and then to the program that it is for.
func TestAPortIsGivenOnce(t *testing.T) {
	given := map[string]bool{}
	for range 500 {
		address, err := Address()
		require.NoError(t, err)
		if given[address] {
			t.Fatalf("%s is given twice", address)
		}
		given[address] = true
	}
	for range 500 {
		others, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer others.Close()
		if given[others.Addr().String()] {
			t.Fatalf("%s is taken by another listener", others.Addr())
		}
	}
	for address := range given {
		own, err := net.Listen("tcp", address)
		require.NoError(t, err)
		require.NoError(t, own.Close())
	}
}
