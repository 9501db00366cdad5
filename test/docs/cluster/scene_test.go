package cluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/docs"
	"kube-queue.dev/kube-queue/test/harness"
)

// scene is a page whose commands run.
type scene struct {
	*harness.Env
	t     *testing.T
	page  *docs.Page
	names docs.Names
	// released is set if the job of the page does not wait. Then kube-controller-manager may first see it after its
	// release, and not report that it was suspended and resumed.
	released bool
	// asOnPage, if set, replaces what depends on the machine with what the page shows.
	asOnPage *strings.Replacer
	// unit is the QueueUnit that the page calls NAME.
	unit string
	// controller is kube-queue-controller, which a scene can stop and start.
	controller *harness.Replica
	// folder is where the commands run, and home the home directory of kubectl.
	folder, home string
	// next is the number of the next command.
	next int
}

// pageNamespace is the namespace of the pages. A scene can use another one.
const pageNamespace = "research"

// newScene reads a page and prepares a folder like a clone of the repository.
func newScene(t *testing.T, env *harness.Env, page string) *scene {
	t.Helper()
	s := &scene{Env: env, t: t, folder: t.TempDir(), home: t.TempDir()}
	var err error
	s.page, err = docs.ReadPage(os.DirFS(suite.Repository), page)
	harness.Must(t, err)
	for _, name := range []string{"examples", "test"} {
		harness.Must(t, os.Symlink(filepath.Join(suite.Repository, name), filepath.Join(s.folder, name)))
	}
	harness.Must(t, os.Symlink(programs, filepath.Join(s.folder, "bin")))
	t.Cleanup(s.end)
	return s
}

// command returns the next command. words are a part of its text. They make a scene readable, and reveal a page that
// has changed.
func (s *scene) command(words string) docs.Command {
	s.t.Helper()
	for s.next < len(s.page.Commands) && !docs.InCluster(s.page.Commands[s.next]) {
		s.next++
	}
	if s.next == len(s.page.Commands) {
		s.t.Fatalf("%s has no command %q after the others; change this test", s.page.Path, words)
	}
	command := s.page.Commands[s.next]
	if !strings.Contains(command.Text, words) {
		s.t.Fatalf("%s: want a command with %q here; change this test", command, words)
	}
	s.next++
	return command
}

// run runs the next command, and compares its output. It repeats a command that only reads until the output is as on
// the page, because the page shows a state that the cluster reaches eventually. For commands in blocks, the page must
// show the output. For a command in the text, it shows none.
func (s *scene) run(words string) string {
	s.t.Helper()
	command := s.command(words)
	var out string
	defer func() { s.t.Logf("%s prints:\n%s", command, out) }()
	if command.Output == "" || !reads(command.Text) {
		var err error
		if out, err = s.shell(command.Text); err != nil {
			s.t.Fatalf("%s: %v\n%s", command, err, out)
		}
		if err := s.compare(command.Output, out); err != nil {
			s.t.Fatalf("%s: %v\nThe page shows:\n%s\nThe cluster shows:\n%s", command, err, command.Output, out)
		}
		if command.Output == "" && !command.Inline && strings.TrimSpace(out) != "" {
			s.t.Errorf("%s prints this, which the page does not show; show it in a block ```console:\n%s", command, out)
		}
		return out
	}
	harness.Eventually(s.t, 40*time.Second, command.String()+" prints what the page shows:\n"+command.Output+"\n", func() (bool, string) {
		var err error
		if out, err = s.shell(command.Text); err == nil {
			err = s.compare(command.Output, out)
		}
		if err != nil {
			return false, err.Error() + "\n" + out
		}
		return true, ""
	})
	return out
}

func (s *scene) compare(shown, out string) error {
	out = s.onPage(out)
	if s.released {
		shown, out = withoutSuspension(shown), withoutSuspension(out)
	}
	return s.names.Compare(shown, out)
}

// withoutSuspension removes the events by which kube-controller-manager reports that it has seen a
// Job suspended and resumed.
func withoutSuspension(text string) string {
	return suspension.ReplaceAllString(text, "")
}

var suspension = regexp.MustCompile(`(?m)^  Normal +(Suspended|Resumed) .* job-controller +Job (suspended|resumed)\n?`)

func reads(command string) bool {
	verbs := []string{" get ", " describe ", " kube-queue why ", " kube-queue list ", " kube-queue tree", " kube-queue queue"}
	return slices.ContainsFunc(verbs, func(verb string) bool { return strings.Contains(command, verb) })
}

// rest runs all other commands.
func (s *scene) rest() {
	s.t.Helper()
	for s.more() {
		s.run("")
	}
}

func (s *scene) more() bool {
	return slices.ContainsFunc(s.page.Commands[s.next:], func(command docs.Command) bool { return docs.InCluster(command) })
}

// end fails the test if the page has more commands.
func (s *scene) end() {
	s.t.Helper()
	if !s.t.Failed() && s.more() {
		s.t.Errorf("%s: no scene runs this command; change this test", s.command(""))
	}
}

// shell runs a command as a reader does, and returns what a terminal shows.
func (s *scene) shell(text string) (string, error) {
	text = s.names.InCluster(text)
	text = strings.ReplaceAll(text, "NAMESPACE", pageNamespace)
	if s.unit != "" {
		text = strings.ReplaceAll(text, "NAME", s.unit)
	}
	if s.Namespace != "default" {
		text = strings.ReplaceAll(text, pageNamespace, s.Namespace)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", text)
	cmd.Dir = s.folder
	cmd.Env = append(os.Environ(), "KUBECONFIG="+suite.Kubeconfig, "HOME="+s.home,
		"PATH="+programs+string(filepath.ListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// onPage replaces the namespace of the scene with that of the page. Both have the same length, so the columns of
// tables stay aligned.
func (s *scene) onPage(out string) string {
	if s.asOnPage != nil {
		out = s.asOnPage.Replace(out)
	}
	if s.Namespace == "default" || s.Namespace == pageNamespace {
		return out
	}
	return strings.ReplaceAll(out, s.Namespace, pageNamespace)
}

// kubectl runs a command of the scene, which is not on the page.
func (s *scene) kubectl(args ...string) string {
	s.t.Helper()
	out, err := suite.Kubectl(s.t.Context(), args...)
	if err != nil {
		s.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// write writes a file into the folder of the commands.
func (s *scene) write(name, text string) {
	s.t.Helper()
	harness.Must(s.t, os.WriteFile(filepath.Join(s.folder, name), []byte(text), 0o644))
}
