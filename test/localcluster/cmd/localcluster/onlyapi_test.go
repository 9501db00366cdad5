package main

import (
	"strings"
	"testing"
)

func TestOnlyAPI(t *testing.T) {
	onlyInTestAll(t, "test/integration uses clusters with only an API server")
	data := t.TempDir()
	r := startRun(t, command("run", "--data", data, "--only-api"))
	ready := r.ready(t)
	parts := status(t, data).Parts
	var names []string
	for _, p := range parts {
		names = append(names, p.Name)
	}
	if got := strings.Join(names, " "); got != "etcd kube-apiserver" {
		t.Errorf("the running parts are %s", got)
	}
	kubectl(t, ready, "", "create", "configmap", "here")
	if nodes := kubectl(t, ready, "", "get", "nodes", "-o", "name"); nodes != "" {
		t.Errorf("there are nodes: %s", nodes)
	}
	r.stdin.Close()
	if ended := r.wait(t); ended.code != 0 {
		t.Errorf("got %+v", ended)
	}
	nothingLeft(t, data, parts...)
}
