package docs

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Execution is an entry of executed.yaml: commands that test/docs/cluster does not run, and what
// executes them. Exactly one of the first four fields is set.
type Execution struct {
	// Test is a package and a test of it, such as "./test/e2e TestX", which runs the commands or
	// does what they do.
	Test string
	// Make is a target of the Makefile that runs the commands.
	Make string
	// Hand says who executes the commands by hand, and when.
	Hand string
	// Mention says why the texts are no commands to run.
	Mention string

	Commands []string
}

// Check compares the commands of all pages with the executed ones, and returns the faults.
func Check(repository fs.FS, executed []byte) ([]string, error) {
	var list []Execution
	if err := yaml.UnmarshalStrict(executed, &list); err != nil {
		return nil, fmt.Errorf("executed.yaml: %w", err)
	}
	makefile, err := fs.ReadFile(repository, "Makefile")
	if err != nil {
		return nil, err
	}
	pages, err := ReadPages(repository)
	if err != nil {
		return nil, err
	}
	var problems []string
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	used := map[string]bool{}
	for _, execution := range list {
		if err := execution.check(repository, string(makefile)); err != nil {
			report("executed.yaml: %v", err)
		}
		for _, command := range execution.Commands {
			command = oneLine(command)
			if _, twice := used[command]; twice {
				report("executed.yaml lists %q twice", command)
			}
			used[command] = false
		}
	}
	for _, page := range pages {
		for _, command := range page.Commands {
			if problem := problemOf(repository, command, string(makefile)); problem != "" {
				report("%s: %s", command, problem)
			}
			if InCluster(command) {
				continue
			}
			if _, listed := used[oneLine(command.Text)]; !listed {
				report("%s: nothing executes this command: execute it in a test, and write the test, or a target of the Makefile, into test/docs/executed.yaml", command)
				continue
			}
			used[oneLine(command.Text)] = true
		}
	}
	for _, command := range slices.Sorted(maps.Keys(used)) {
		if !used[command] {
			report("executed.yaml lists %q, which is on no page, or which test/docs/cluster runs", command)
		}
	}
	return problems, nil
}

// problemOf finds commands that cannot work: targets, packages and tests that do not exist.
func problemOf(repository fs.FS, command Command, makefile string) string {
	words := strings.Fields(command.Text)
	switch {
	case words[0] == "make" && len(words) > 1 && !hasTarget(makefile, words[1]):
		return "the Makefile has no such target"
	case words[0] != "go":
		return ""
	}
	var tests []string
	for i, word := range words[1:] {
		folder, isPackage := strings.CutPrefix(strings.TrimSuffix(word, "/..."), "./")
		if isPackage {
			if _, err := fs.Stat(repository, folder); err != nil {
				return "there is no package " + word
			}
			tests = append(tests, testsIn(repository, folder)...)
		}
		if word == "-run" || word == "-bench" || word == "-fuzz" {
			pattern := strings.Trim(words[i+2], "'")
			for one := range strings.SplitSeq(pattern, "|") {
				one, _, _ = strings.Cut(one, "/")
				if one != "^$" && !slices.ContainsFunc(tests, func(test string) bool { return strings.Contains(test, one) }) {
					return "no test matches " + one
				}
			}
		}
	}
	return ""
}

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w*)\(`)

// testsIn are the names of the tests, benchmarks and fuzz tests of a package.
func testsIn(repository fs.FS, folder string) []string {
	files, _ := fs.Glob(repository, path.Join(folder, "*_test.go"))
	var tests []string
	for _, file := range files {
		text, err := fs.ReadFile(repository, file)
		if err != nil {
			continue
		}
		for _, match := range testFunction.FindAllStringSubmatch(string(text), -1) {
			tests = append(tests, match[1])
		}
	}
	return tests
}

func (e Execution) check(repository fs.FS, makefile string) error {
	set := 0
	for _, field := range []string{e.Test, e.Make, e.Hand, e.Mention} {
		if field != "" {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("set one of test, make, hand and mention for %q", e.Commands)
	}
	if e.Make != "" && !hasTarget(makefile, e.Make) {
		return fmt.Errorf("the Makefile has no target %s", e.Make)
	}
	if e.Test == "" {
		return nil
	}
	folder, test, _ := strings.Cut(e.Test, " ")
	if slices.Contains(testsIn(repository, path.Clean(folder)), test) {
		return nil
	}
	return fmt.Errorf("%s has no test %s", folder, test)
}

// hasTarget reports whether the Makefile has a target, including pattern rules.
func hasTarget(makefile, target string) bool {
	for _, name := range regexp.MustCompile(`(?m)^([a-z0-9%-]+):`).FindAllStringSubmatch(makefile, -1) {
		if match, err := path.Match(strings.ReplaceAll(name[1], "%", "*"), target); err == nil && match {
			return true
		}
	}
	return false
}

// oneLine removes line breaks, so that commands can be listed in one line.
func oneLine(command string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(command, "\\\n", " ")), " ")
}
