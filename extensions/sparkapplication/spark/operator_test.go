package spark

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubeflow/spark-operator/v2/api/v1beta2"
	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/test/require"
)

const module = "github.com/kubeflow/spark-operator/v2"

// operator asks the operator's own code about applications and pods. Its other end is testdata/operator/figures.
type operator struct {
	in  io.Writer
	out *bufio.Reader
}

type answer struct {
	Driver, Executor corev1.ResourceList
	Executors        int32
	Pod              *corev1.Pod
	Error            string
}

// startOperator builds the other end inside a copy of the operator's module, with the modules and flags that
// localcluster uses to build the operator, so that nothing is compiled twice.
func startOperator(t *testing.T) *operator {
	t.Helper()
	from := strings.TrimSpace(run(t, ".", "list", "-m", "-f", "{{.Dir}}", module))
	to, ours := t.TempDir(), filepath.Join("testdata", "operator")
	for _, part := range []string{"api", "internal", "pkg"} {
		require.NoError(t, os.CopyFS(filepath.Join(to, part), os.DirFS(filepath.Join(from, part))))
	}
	component := filepath.Join("..", "..", "..", "test", "localcluster", "components", "sparkoperator")
	copyFile(t, filepath.Join(component, "go.mod"), filepath.Join(to, "go.mod"))
	copyFile(t, filepath.Join(component, "go.sum"), filepath.Join(to, "go.sum"))
	run(t, to, "mod", "edit", "-module="+module, "-droprequire="+module)
	copyFile(t, filepath.Join(ours, "figures", "main.go"), filepath.Join(to, "main.go"))
	copyFile(t, filepath.Join(ours, "webhook", "mutate.go"), filepath.Join(to, "internal", "webhook", "mutate.go"))
	run(t, to, "build", "-trimpath", "-o", "figures", ".")
	return start(t, filepath.Join(to, "figures"))
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	require.NoError(t, err)
}

func run(t *testing.T, folder string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = folder
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0")
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go %s in %s: %v", strings.Join(args, " "), folder, err)
	}
	return string(out)
}

func start(t *testing.T, program string) *operator {
	t.Helper()
	command := exec.Command(program)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	require.NoError(t, err)
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		// It ends when its input does.
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err := command.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &operator{in: in, out: bufio.NewReader(out)}
}

func (o *operator) ask(app *v1beta2.SparkApplication, pod *corev1.Pod) (answer, error) {
	var said answer
	question, err := json.Marshal(map[string]any{"app": app, "pod": pod})
	if err != nil {
		return said, err
	}
	if _, err := o.in.Write(append(question, '\n')); err != nil {
		return said, err
	}
	line, err := o.out.ReadBytes('\n')
	if err != nil {
		return said, err
	}
	return said, json.Unmarshal(line, &said)
}

// refused is the answer for an application that cannot be counted.
const refused = "refused"

// figures returns the operator's figures in the form of ours.
func (o *operator) figures(app *v1beta2.SparkApplication) (string, error) {
	said, err := o.ask(app, nil)
	if err != nil || said.Error != "" {
		return refused, err
	}
	return fmt.Sprintf("driver %s, %d executors %s", requests(said.Driver), said.Executors, requests(said.Executor)), nil
}

// ours returns the requests of Spark's containers.
func ours(app *v1beta2.SparkApplication) string {
	sets, err := Pods(&app.Spec)
	if err != nil {
		return refused
	}
	driver, executors := "none", ""
	for _, set := range sets {
		asked := requests(set.Template.Spec.Containers[0].Resources.Requests)
		if set.Name == driverRole {
			driver = asked
			continue
		}
		executors = fmt.Sprintf("%d executors %s", set.Count, asked)
	}
	return "driver " + driver + ", " + executors
}

func requests(list corev1.ResourceList) string {
	cpu, memory := list[corev1.ResourceCPU], list[corev1.ResourceMemory]
	return fmt.Sprintf("%s %dMi", cpu.String(), memory.Value()>>20)
}
