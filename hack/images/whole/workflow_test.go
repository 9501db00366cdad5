package whole

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const workflowFolder = "../../../.github/workflows"

// workflow is the part of a workflow that the tests read.
type workflow struct {
	Jobs map[string]struct {
		Permissions map[string]string
		Env         map[string]string
		Steps       []step
	}
}

type step struct {
	Name, Uses, Run string
	Env             map[string]string
	With            map[string]string
	// WorkingDirectory is where the command runs.
	WorkingDirectory string `json:"working-directory"`
}

// workflows are the names of all workflows.
func workflows(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(workflowFolder)
	if err != nil || len(entries) == 0 {
		t.Fatalf("there are no workflows: %v", err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func readWorkflow(t *testing.T, name string) workflow {
	t.Helper()
	var w workflow
	must(t, yaml.Unmarshal([]byte(read(t, filepath.Join(workflowFolder, name))), &w))
	return w
}

// runner runs the commands of a job as GitHub does.
type runner struct {
	t *testing.T
	// folder is the checkout, and bin a folder at the front of PATH.
	folder, bin string
	// values are the values of expressions such as github.ref_name.
	values map[string]string
	// env is the environment of the job. Steps can add to it.
	env map[string]string
}

// job runs all commands of a job. It returns the actions that the job uses, which do not run here.
func (r *runner) job(w workflow, name string) (actions []step) {
	r.t.Helper()
	job, known := w.Jobs[name]
	if !known {
		r.t.Fatalf("the workflow has no job %s", name)
	}
	maps.Copy(r.env, r.evaluated(job.Env))
	for _, step := range job.Steps {
		if step.Run == "" {
			actions = append(actions, step)
			continue
		}
		r.t.Logf("step %q", step.Name)
		r.step(step)
	}
	return actions
}

func (r *runner) step(step step) {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), "env")
	must(r.t, os.WriteFile(file, nil, 0o644))
	// GitHub runs bash with these options.
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
	cmd.Dir = filepath.Join(r.folder, step.WorkingDirectory)
	cmd.Env = append(os.Environ(), "GITHUB_ENV="+file, "PATH="+r.bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for _, env := range []map[string]string{r.env, r.evaluated(step.Env)} {
		for name, value := range env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("step %q: %v\n%s", step.Name, err, out)
	}
	for line := range strings.Lines(read(r.t, file)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok {
			r.t.Fatalf("step %q writes %q to GITHUB_ENV", step.Name, line)
		}
		r.env[name] = value
	}
}

var expression = regexp.MustCompile(`\$\{\{ *([a-zA-Z_.]+) *\}\}`)

func (r *runner) evaluated(env map[string]string) map[string]string {
	r.t.Helper()
	out := map[string]string{}
	for name, value := range env {
		out[name] = expression.ReplaceAllStringFunc(value, func(text string) string {
			value, known := r.values[expression.FindStringSubmatch(text)[1]]
			if !known {
				r.t.Fatalf("%s: the test does not know %s", name, text)
			}
			return value
		})
	}
	return out
}

// GitHub replaces expressions in a command before the shell reads it, so a tag or a name could become a command.
func TestCommandsOfWorkflowsGetValuesByTheEnvironment(t *testing.T) {
	for _, name := range workflows(t) {
		for job, content := range readWorkflow(t, name).Jobs {
			for _, step := range content.Steps {
				if strings.Contains(step.Run, "${{") {
					t.Errorf("%s, job %s, step %q has an expression in its command", name, job, step.Name)
				}
			}
		}
	}
}

var pinned = regexp.MustCompile(`^[a-z0-9/-]+@[0-9a-f]{40}$`)

func TestActionsArePinnedByCommit(t *testing.T) {
	for _, name := range workflows(t) {
		for job, content := range readWorkflow(t, name).Jobs {
			for _, step := range content.Steps {
				if (step.Run == "") != pinned.MatchString(step.Uses) {
					t.Errorf("%s, job %s: %q is not pinned by the SHA of its commit", name, job, step.Uses)
				}
			}
		}
	}
}

// Each job has only the permissions that it needs, and no workflow gets the default ones.
func TestOnlyTheJobThatPublishesMayWrite(t *testing.T) {
	for _, name := range workflows(t) {
		var top struct{ Permissions map[string]string }
		text := read(t, filepath.Join(workflowFolder, name))
		must(t, yaml.Unmarshal([]byte(text), &top))
		if top.Permissions == nil || slices.Contains(slices.Collect(maps.Values(top.Permissions)), "write") {
			t.Errorf("%s has the permissions %v for all jobs", name, top.Permissions)
		}
		for job, content := range readWorkflow(t, name).Jobs {
			var writes []string
			for right, level := range content.Permissions {
				if level == "write" {
					writes = append(writes, right)
				}
			}
			slices.Sort(writes)
			var may []string
			if name == "release.yaml" && job == "publish" {
				may = []string{"attestations", "contents", "id-token", "packages"}
			}
			if !slices.Equal(writes, may) {
				t.Errorf("%s, job %s may write %q, want %q", name, job, writes, may)
			}
		}
	}
}
