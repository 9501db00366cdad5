package cluster

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/localcluster/internal/build"
	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
	"kube-queue.dev/kube-queue/test/require"
)

// supervisorFor returns a supervisor for real programs in a new folder.
func supervisorFor(t *testing.T) *Supervisor {
	t.Helper()
	cache, err := build.CacheDir()
	require.NoError(t, err)
	source, err := filepath.Abs("../..")
	require.NoError(t, err)
	config := DefaultConfig()
	config.Nodes = 1
	builder := &build.Builder{Source: source, Cache: cache, Out: os.Stderr, Starter: process.NewStarter()}
	components := config.Components()
	dirs, err := builder.Ensure(t.Context(), components)
	require.NoError(t, err)
	config.Built = map[string]string{}
	for i, c := range components {
		config.Built[c.Name] = dirs[i]
	}
	folder := Folder(t.TempDir())
	lock, err := folder.Prepare(config)
	require.NoError(t, err)
	t.Cleanup(func() { lock.Close() })
	supervisor, err := NewSupervisor(folder, t.Logf)
	require.NoError(t, err)
	return supervisor
}

func checkNothingLeft(t *testing.T, folder Folder) {
	t.Helper()
	if strays := folder.strays(); len(strays) > 0 {
		t.Errorf("processes are left: %v", strays)
	}
	if _, err := os.Stat(folder.socket()); err == nil {
		t.Error("the socket is left")
	}
}

// takePort gives a part a port that is in use.
func takePort(t *testing.T, ports Ports, name string) {
	t.Helper()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { taken.Close() })
	ports[name] = taken.Addr().(*net.TCPAddr).Port
}

func TestLostPortIsReplaced(t *testing.T) {
	supervisor := supervisorFor(t)
	lost := []string{portEtcdClient, portKwok}
	attempts := 0
	supervisor.pickPorts = func(names []string) (Ports, error) {
		ports, err := pickPorts(names)
		if err == nil && attempts < len(lost) {
			takePort(t, ports, lost[attempts])
		}
		attempts++
		return ports, err
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready := false
	if err := supervisor.Run(ctx, func(Ready) { ready = true; cancel() }); err != nil || !ready {
		t.Errorf("ready %v, error %v", ready, err)
	}
	if attempts != 3 {
		t.Errorf("ready after %d attempts, want 3", attempts)
	}
	checkNothingLeft(t, supervisor.folder)
}

func TestStartFailsIfPortsAreAlwaysLost(t *testing.T) {
	supervisor := supervisorFor(t)
	supervisor.pickPorts = func(names []string) (Ports, error) {
		ports, err := pickPorts(names)
		takePort(t, ports, portAPIServer)
		return ports, err
	}
	err := supervisor.Run(t.Context(), func(Ready) { t.Error("it became ready") })
	var crashed *crash
	if !errors.As(err, &crashed) || crashed.part != "kube-apiserver" || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}
	checkNothingLeft(t, supervisor.folder)
}
