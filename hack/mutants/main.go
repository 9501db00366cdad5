// Command mutants measures which faults the unit tests find: it plants faults in packages, one at a time, and
// runs tests. The tree is never modified: go test reads the changed file through -overlay.
//
// Terms. A mutant is a package with one fault. A site is a place where one kind of fault, the operator, can be
// planted. A mutant is killed if a test fails or does not end in time; otherwise it survives. A judge is a
// package whose tests run: the mutant itself first, then the packages of the arguments and of --judges
// whose tests import it, directly or indirectly.
//
// The same tree, seed and count give the same mutants, and random tests have a fixed seed too. So the rates of
// two sets of tests can be compared. A mutant that does not compile is replaced. Packages named oracle are not
// changed: they are models that tests compare with.
//
// A mutant can use all memory, and on a busy machine a wall-clock timeout also kills mutants that are only slow. So
// limit memory and processor time instead, with ulimit -v 12000000 -St 120 and --timeout 1h.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

var (
	seed    = flag.Uint64("seed", 1, "seed of the draw")
	count   = flag.Int("count", 200, "number of mutants")
	only    = flag.String("only", "", "numbers of the mutants to run, separated by commas; default: all")
	judges  = flag.String("judges", "./pkg/simulator/...", "packages that judge and are not changed")
	results = flag.String("results", "bin/mutants.tsv", "file of the results; its mutants do not run again")
	short   = flag.Bool("short", false, "run tests with -short")
	timeout = flag.Duration("timeout", time.Minute, "time for the tests of a package")

	// Random tests must not write files into the tree or shrink failures.
	rapid      = "pgregory.net/rapid"
	rapidFlags = []string{"-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=0s"}

	failed = regexp.MustCompile(`(?m)^FAIL\t(\S+)`)
)

const (
	survived = "survived"
	invalid  = "invalid"
)

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal("mutants: ", err)
	}
	return v
}

func main() {
	log.SetFlags(0)
	flag.Parse()
	tests, sites := load(flag.Args())
	if outcome := test(slices.Sorted(maps.Keys(tests)), tests); outcome != survived {
		log.Fatal("mutants: tests fail without a fault: ", outcome)
	}
	file := must(os.OpenFile(*results, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644))
	rows := string(must(io.ReadAll(file)))
	for i, candidates := range draw(sites, *count, *seed) {
		number := strconv.Itoa(i + 1)
		if strings.Contains("\n"+rows, "\n"+number+"\t") || *only != "" && !slices.Contains(strings.Split(*only, ","), number) {
			continue
		}
		row := number + "\t" + run(candidates, tests) + "\n"
		must(io.WriteString(io.MultiWriter(file, os.Stdout), row))
		rows += row
	}
	fmt.Print(summary(rows))
}

// load returns what the tests of each package import, and the sites of each package of the patterns.
func load(patterns []string) (tests map[string][]string, sites [][]site) {
	root := must(os.Getwd())
	list := append([]string{"list", "-test", "-json=ImportPath,Match,Dir,GoFiles,Deps", *judges}, patterns...)
	tests = map[string][]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(must(exec.Command("go", list...).Output())))); decoder.More(); {
		var p struct {
			ImportPath, Dir      string
			Match, GoFiles, Deps []string
		}
		must(0, decoder.Decode(&p))
		if tested, ok := strings.CutSuffix(p.ImportPath, ".test"); ok {
			tests[tested] = p.Deps
		}
		judgesOnly := !slices.ContainsFunc(p.Match, func(m string) bool { return m != *judges })
		if judgesOnly || path.Base(p.ImportPath) == "oracle" || strings.Contains(p.ImportPath, " [") {
			continue
		}
		var ofPackage []site
		for _, name := range p.GoFiles {
			file := must(filepath.Rel(root, filepath.Join(p.Dir, name)))
			ofPackage = append(ofPackage, must(sitesOf(p.ImportPath, file, must(os.ReadFile(file))))...)
		}
		sites = append(sites, ofPackage)
	}
	for _, ofPackage := range sites {
		if len(ofPackage) > 0 {
			pkg := ofPackage[0].pkg
			fmt.Println(pkg, "has", len(ofPackage), "sites; judges:", pkg, strings.Join(judgesOf(pkg, tests), " "))
		}
	}
	return tests, sites
}

// run plants the first candidate that compiles, and returns its row of the results.
func run(candidates []site, tests map[string][]string) string {
	folder := must(os.MkdirTemp("", "mutants"))
	defer os.RemoveAll(folder)
	changed, overlay := filepath.Join(folder, "mutant.go"), filepath.Join(folder, "overlay.json")
	for _, c := range candidates {
		source := string(must(os.ReadFile(c.file)))
		must(0, os.WriteFile(changed, []byte(source[:c.start]+c.text+source[c.end:]), 0o600))
		replace := must(json.Marshal(map[string]any{"Replace": map[string]string{c.file: changed}}))
		must(0, os.WriteFile(overlay, replace, 0o600))
		start, outcome := time.Now(), survived
		if tests[c.pkg] != nil {
			outcome = test([]string{c.pkg}, tests, "-overlay", overlay)
		}
		if outcome == survived {
			outcome = test(judgesOf(c.pkg, tests), tests, "-overlay", overlay)
		}
		if outcome != invalid {
			return fmt.Sprintf("%s:%d:%d\t%s\t%s\t%.0f", c.file, c.line, c.column, c.operator, outcome, time.Since(start).Seconds())
		}
	}
	log.Fatal("mutants: no site is left")
	return ""
}

// judgesOf returns the other packages whose tests import pkg.
func judgesOf(pkg string, tests map[string][]string) (judges []string) {
	for judge, imports := range tests {
		if judge != pkg && slices.ContainsFunc(imports, func(i string) bool { return i == pkg || strings.HasPrefix(i, pkg+" [") }) {
			judges = append(judges, judge)
		}
	}
	slices.Sort(judges)
	return judges
}

// test runs tests until one fails, random tests last, and returns what killed the mutant.
func test(packages []string, tests map[string][]string, flags ...string) string {
	for _, random := range []bool{false, true} {
		run := append([]string{"test", "-count=1", "-failfast", "-vet=off", fmt.Sprint("-short=", *short), fmt.Sprint("-timeout=", *timeout)}, flags...)
		n := len(run)
		for _, p := range packages {
			if slices.Contains(tests[p], rapid) == random {
				run = append(run, p)
			}
		}
		if len(run) == n {
			continue
		}
		if random {
			run = append(run, rapidFlags...)
		}
		out, err := exec.Command("go", run...).CombinedOutput()
		switch killer := failed.FindSubmatch(out); {
		case err == nil:
		case killer == nil:
			log.Fatalf("mutants: %v: %v\n%s", run, err, out)
		case strings.Contains(string(out), "[build failed]"):
			return invalid
		case strings.Contains(string(out), "panic: test timed out"), strings.Contains(string(out), "SIGXCPU"):
			return string(killer[1]) + " (timeout)"
		default:
			return string(killer[1])
		}
	}
	return survived
}

// summary shows how many mutants of each package were killed.
func summary(rows string) string {
	mutants, killed := map[string]int{}, map[string]int{}
	for row := range strings.Lines(rows) {
		columns := strings.Split(row, "\t")
		pkg := path.Dir(columns[1])
		mutants[pkg]++
		if columns[3] != survived {
			killed[pkg]++
		}
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PACKAGE\tMUTANTS\tKILLED\tRATE")
	for _, pkg := range slices.Sorted(maps.Keys(mutants)) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d%%\n", pkg, mutants[pkg], killed[pkg], 100*killed[pkg]/mutants[pkg])
	}
	must(0, table.Flush())
	return text.String()
}
