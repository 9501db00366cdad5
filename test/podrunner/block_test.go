package podrunner

import (
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/require"
)

func TestRunnersHaveDifferentAddresses(t *testing.T) {
	first, err := reserve(false)
	require.NoError(t, err)
	defer first.release()
	second, err := reserve(false)
	require.NoError(t, err)
	defer second.release()
	seen := map[string]bool{}
	for _, b := range []*block{first, second, first, second} {
		ip, process, err := b.next()
		require.NoError(t, err)
		if seen[ip] || strings.TrimPrefix(ip, "10.") != strings.TrimPrefix(process, "127.") {
			t.Errorf("pod %s has its process at %s, after %v", ip, process, seen)
		}
		seen[ip] = true
	}
}

func TestAddressesAreNotUsedAgain(t *testing.T) {
	b := &block{number: 3}
	last := ""
	for range blockSize {
		ip, _, err := b.next()
		require.NoError(t, err)
		last = ip
	}
	if last != "10.77.3.250" {
		t.Errorf("the last address is %s", last)
	}
	if _, _, err := b.next(); err == nil {
		t.Error("there is another address")
	}
	if ip, process, _ := (&block{number: 3, ipv6: true}).next(); ip != "fd00:77::a4d:301" || process != "127.77.3.1" {
		t.Errorf("the first IPv6 address is %s, and its process at %s", ip, process)
	}
}
