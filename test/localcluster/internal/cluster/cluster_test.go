package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/require"
)

func TestAuditPolicyListsResourcesWithObjects(t *testing.T) {
	plain := renderAuditPolicy("Metadata", nil)
	if strings.Contains(plain, "AUDIT_") || !strings.HasSuffix(plain, "- level: Metadata\n") {
		t.Errorf("a placeholder is left:\n%s", plain)
	}
	// The first matching rule applies, so these rules precede the rule for all.
	want := `- level: RequestResponse
  verbs: [create, update, patch]
  resources:
  - group: "batch"
    resources: [jobs]
- level: RequestResponse
  verbs: [create, update, patch]
  resources:
  - group: ""
    resources: [pods]
- level: Metadata
`
	if got := renderAuditPolicy("Metadata", []string{"jobs.batch", "pods"}); got != strings.TrimSuffix(plain, "- level: Metadata\n")+want {
		t.Errorf("got\n%s", got)
	}
}

func TestInvalidConfigurationIsRefused(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the default is refused: %v", err)
	}
	for want, change := range map[string]func(*Config){
		`unknown version "1.20"; known versions: 1.30, 1.34, 1.36, 1.37`: func(c *Config) { c.Kubernetes = "1.20" },
		`--feature-gates "GenericWorkload": must be`:                     func(c *Config) { c.FeatureGates = []string{"GenericWorkload"} },
		`--runtime-config "api/beta=yes": must be`:                       func(c *Config) { c.APIs = []string{"api/beta=yes"} },
		"--nodes":        func(c *Config) { c.Nodes = -1 },
		"--node-cpu":     func(c *Config) { c.NodeCPU = "many" },
		"--node-memory":  func(c *Config) { c.NodeMemory = "" },
		"--node-gpus":    func(c *Config) { c.NodeGPUs = -1 },
		"--pod-run-time": func(c *Config) { c.PodRunTime = -1 },
		"known levels: RequestResponse, Metadata":                                           func(c *Config) { c.AuditLevel = "Everything" },
		"all objects at --audit-level RequestResponse":                                      func(c *Config) { c.AuditObjects = []string{"pods"} },
		"--only-api: operators need":                                                        func(c *Config) { c.OnlyAPI, c.Operators = true, []string{trainingOperator} },
		`--audit-objects "pods/status": must be`:                                            func(c *Config) { c.AuditLevel, c.AuditObjects = "Metadata", []string{"pods/status"} },
		`unknown operator "spark"; known operators: ` + strings.Join(OperatorNames(), ", "): func(c *Config) { c.Operators = []string{"spark"} },
		"operator jobset: Kubernetes 1.30 does not accept its CRDs: use --kubernetes=1.34":  func(c *Config) { c.Kubernetes, c.Operators = "1.30", []string{trainer} },
	} {
		config := DefaultConfig()
		change(&config)
		require.ErrorSays(t, config.Validate(), want)
	}
}

func TestOneOfTwoOperatorsRunsMPIJob(t *testing.T) {
	both := operators[trainingOperator].in(Config{Operators: []string{trainingOperator, mpiOperator}})
	alone := operators[trainingOperator].in(Config{Operators: []string{trainingOperator}})
	text := fmt.Sprint(both.args, both.jobs, both.component.Files[0].Paths)
	if strings.Contains(text, "mpijob") || !strings.Contains(text, "--enable-scheme=tfjob") {
		t.Errorf("with mpi-operator it has %s", text)
	}
	if len(alone.jobs) != len(trainingJobs) || len(both.jobs) != len(alone.jobs)-1 || len(both.args) != len(alone.args)-1 ||
		len(both.component.Files[0].Paths) != len(alone.component.Files[0].Paths)-1 {
		t.Errorf("with mpi-operator it does not lack exactly one kind: %+v", both)
	}
}

func TestTextsOfOperatorsAreValid(t *testing.T) {
	s := &setup{config: DefaultConfig(), ports: Ports{}, folder: "/data"}
	for name, o := range operators {
		if strings.Contains(o.config, "\t") {
			t.Errorf("%s: its configuration has a tab, which YAML refuses", name)
		}
		variables := s.variables(name, o)
		for _, text := range slices.Concat(o.args, o.env, o.companion.args, []string{o.config, o.companion.url}) {
			os.Expand(text, func(key string) string {
				if _, known := variables[key]; !known {
					t.Errorf("%s: ${%s} is unknown in %q", name, key, text)
				}
				return ""
			})
		}
	}
}

func TestJobIsSuspendedByItsConditionOrItsField(t *testing.T) {
	for _, test := range []struct {
		operator, status string
		want             bool
	}{
		{jobSet, `{"conditions": [{"type": "Other", "status": "True"}, {"type": "Suspended", "status": "True"}]}`, true},
		{jobSet, `{"conditions": [{"type": "Suspended", "status": "False"}]}`, false},
		{jobSet, `{}`, false},
		{sparkOperator, `{"applicationState": {"state": "SUSPENDED"}}`, true},
		{sparkOperator, `{"applicationState": {"state": "NEW"}}`, false},
		{sparkOperator, `{}`, false},
	} {
		var status object
		require.NoError(t, json.Unmarshal([]byte(test.status), &status))
		if got := operators[test.operator].jobs[0].isSuspended(status); got != test.want {
			t.Errorf("%s of %s: got %v", test.status, test.operator, got)
		}
	}
}

func TestFolderHasOneOwner(t *testing.T) {
	folder := Folder(t.TempDir())
	lock, err := folder.Prepare(DefaultConfig())
	require.NoError(t, err)
	if _, err := folder.Prepare(DefaultConfig()); !errors.Is(err, ErrInUse) {
		t.Errorf("the second got %v", err)
	}
	if !folder.InUse() {
		t.Error("InUse is false for a locked folder")
	}
	lock.Close()
	if folder.InUse() {
		t.Error("InUse is true for an unlocked folder")
	}
}

func TestPrepareEmptiesOnlyFoldersOfClusters(t *testing.T) {
	folder := Folder(t.TempDir())
	precious := folder.Path("precious")
	require.NoError(t, os.WriteFile(precious, nil, 0o600))
	_, err := folder.Prepare(DefaultConfig())
	require.ErrorSays(t, err, "not created by localcluster")
	_, err = os.Stat(precious)
	require.NoError(t, err)

	folder = Folder(filepath.Join(t.TempDir(), "new"))
	for range 2 {
		lock, err := folder.Prepare(DefaultConfig())
		require.NoError(t, err)
		lock.Close()
		if _, err := os.Stat(folder.AuditLog()); err == nil {
			t.Error("files of an earlier cluster still exist")
		}
		require.NoError(t, os.WriteFile(folder.AuditLog(), nil, 0o600))
	}
}

func TestSocketPathIsNeverTooLong(t *testing.T) {
	short, long := Folder("/data"), Folder("/"+strings.Repeat("x", 200))
	if got := short.socket(); got != "/data/control.sock" {
		t.Errorf("got %s", got)
	}
	if got := long.socket(); len(got) > maxSocketPath || got == (long+"y").socket() {
		t.Errorf("got %s", got)
	}
}
