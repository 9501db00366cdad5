package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

const job = `{"stage":"ResponseComplete","verb":"create","user":{"username":"admin"},"objectRef":{"resource":"tfjobs","apiGroup":"kubeflow.org","apiVersion":"v1","namespace":"default","name":"a"},` +
	`"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-03-01T12:00:00.000001Z","stageTimestamp":"2026-03-01T12:00:00.000002Z","responseObject":{"kind":"TFJob","metadata":` +
	`{"name":"a","namespace":"default","uid":"u","resourceVersion":"7","annotations":{"scheduling.x-k8s.io/suspend":"true"}},"spec":{"runPolicy":{"suspend":SUSPEND}}}}` + "\n"

func TestExitCodes(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "audit.log")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write(string(bytes.ReplaceAll([]byte(job), []byte("SUSPEND"), []byte("true"))))
	bad := write(string(bytes.ReplaceAll([]byte(job), []byte("SUSPEND"), []byte("false"))))
	for _, test := range []struct {
		name string
		args []string
		want int
	}{
		{"nothing found", []string{good}, exitGood},
		{"flags after the log", []string{good, "--count-writes", "--oversell-rate=1.2"}, exitGood},
		{"quota by ResourceQuota", []string{good, "--resource-quota"}, exitGood},
		{"a violation", []string{"--count-writes", bad}, exitBroken},
		{"help", []string{"--help"}, exitGood},
		{"an empty log", []string{write("")}, exitNoAnswer},
		{"no log", []string{filepath.Join(t.TempDir(), "none")}, exitNoAnswer},
		{"nonsense", []string{write("nonsense\n")}, exitNoAnswer},
		{"no argument", nil, exitNoAnswer},
		{"an unknown flag", []string{good, "--skip=none"}, exitNoAnswer},
		{"an unreadable rate", []string{good, "--oversell-rate=much"}, exitNoAnswer},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out, complaints bytes.Buffer
			if got := run(test.args, &out, &complaints); got != test.want {
				t.Errorf("exit code %d, want %d\n%s%s", got, test.want, out.String(), complaints.String())
			}
		})
	}
}
