package settings_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	logsapi "k8s.io/component-base/logs/api/v1"

	"kube-queue.dev/kube-queue/pkg/program/settings"
	"kube-queue.dev/kube-queue/test/require"
)

// thing has settings of every form.
type thing struct {
	name, rate, kinds, names, types, resources string
	workers                                    int
	lead                                       bool
	patterns                                   logsapi.VModuleConfiguration
}

func (o *thing) declare() *settings.Set {
	set := settings.New("thing", "ThingConfiguration")
	o.name, o.rate, o.kinds, o.workers = "nobody", "1.0", "a", 1
	set.Group("All",
		settings.Setting{Var: &o.name, Flag: "name", Field: "name", Help: "Name.", Env: []string{"ThingName"}},
		settings.Setting{Var: &o.rate, Flag: "rate", Field: "rate", Help: "Rate.", Form: settings.Amount()},
		settings.Setting{Var: &o.kinds, Flag: "kinds", Field: "kinds", Help: "Kinds.", Form: settings.List()},
		settings.Setting{Var: &o.workers, Flag: "workers", Field: "work.workers", Help: "Workers.", Check: func() error {
			if o.workers < 1 {
				return fmt.Errorf("%d is too few", o.workers)
			}
			return nil
		}},
		settings.Setting{Var: &o.lead, Flag: "lead", Field: "work.lead", Help: "Lead."},
		settings.Setting{Var: logsapi.VModuleConfigurationPflag(&o.patterns), Flag: "patterns", Field: "patterns", Help: "Patterns.",
			Form: settings.Patterns(), Reset: func() { o.patterns = nil }},
		settings.Setting{Var: &o.names, Flag: "names", Field: "names", Help: "Names.", Form: settings.Texts()},
		settings.Setting{Var: &o.types, Flag: "types", Field: "types", Help: "Types.", Form: settings.Types()},
		settings.Setting{Var: &o.resources, Flag: "resources", Field: "resources", Help: "Resources.", Form: settings.Resources()})
	set.PassOver("OLD_THING", "it is old")
	return set
}

const header = "apiVersion: config.kube-queue.dev/v1alpha1\nkind: ThingConfiguration\n"

// readFile reads a file with this text.
func readFile(t testing.TB, text string, args ...string) (*thing, string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "thing.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	o := &thing{}
	return o, file, o.declare().Read(append(args, "--config", file), nil)
}

func TestAFileSetsWhatItNamesAndNothingElse(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", header, "nobody 1.0 a 1 false []"},
		{"each form", header + "name: x\nrate: 1.15\nkinds: [b, c]\nwork: {workers: 3, lead: true}\npatterns: [{filePattern: p*, verbosity: 4}]\n", "x 1.15 b,c 3 true [{p* 4}]"},
		{"a rate as text", header + `rate: "1.50"`, "nobody 1.50 a 1 false []"},
		{"an empty list", header + "kinds: []", "nobody 1.0  1 false []"},
		{"null, which is as good as nothing", header + "name: null\nwork: null\nkinds:\n", "nobody 1.0 a 1 false []"},
		{"JSON", `{"apiVersion": "config.kube-queue.dev/v1alpha1", "kind": "ThingConfiguration", "work": {"workers": 2}}`, "nobody 1.0 a 2 false []"},
		{"behind a document of comments", "# who owns this\n---\n" + header + "name: x\n", "x 1.0 a 1 false []"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, _, err := readFile(t, c.text)
			require.NoError(t, err)
			if got := fmt.Sprint(o.name, " ", o.rate, " ", o.kinds, " ", o.workers, " ", o.lead, " ", o.patterns); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestResourcesOfAFileAreThoseOfTheFlag(t *testing.T) {
	o, _, err := readFile(t, header+`resources: [{namespaces: [a, b-c], requests: {memory: 64Mi, cpu: 0.5}, limits: {memory: 1Gi}}, {namespaces: ["*"], limits: {example.com/gpu: 1}}, {namespaces: [d], requests: {}}]`)
	const want = "a:requests.cpu=0.5:requests.memory=64Mi:limits.memory=1Gi,b-c:requests.cpu=0.5:requests.memory=64Mi:limits.memory=1Gi,*:limits.example.com/gpu=1,d:"
	if err != nil || o.resources != want {
		t.Errorf("the flag is %q, want %q, error %v", o.resources, want, err)
	}
}

func TestAFileThatIsWrongIsRefusedWithFileFieldAndWhatIsKnown(t *testing.T) {
	for _, c := range []struct {
		name, text string
		words      []string
	}{
		{"no version", "kind: ThingConfiguration", []string{"apiVersion", settings.APIVersion}},
		{"another version", "apiVersion: config.kube-queue.dev/v1\nkind: ThingConfiguration", []string{"apiVersion", settings.APIVersion, `"config.kube-queue.dev/v1"`}},
		{"the kind of another program", "apiVersion: config.kube-queue.dev/v1alpha1\nkind: OtherConfiguration", []string{"kind", "ThingConfiguration", "thing", `"OtherConfiguration"`}},
		{"an unknown field", header + "nam: x", []string{`unknown field "nam"`, "apiVersion, kind, kinds, name, names, patterns, rate, resources, types, work"}},
		{"an unknown field that holds nothing", header + "nam: null", []string{`unknown field "nam"`}},
		{"a field in the wrong case", header + "Name: x", []string{`unknown field "Name"`}},
		{"an unknown field of a section", header + "work: {worker: 1}", []string{`unknown field "work.worker"`, "lead, workers"}},
		{"two faults, both reported", header + "nam: x\nwork: {workers: 0}", []string{`"nam"`, "work.workers: 0 is too few"}},
		{"a section that is none", header + "work: 3", []string{"work: must be an object with the fields lead, workers, not 3"}},
		{"a list for a section", header + "work: [1]", []string{"work: must be an object with the fields"}},
		{"a field that is none", header + "name: {a: b}", []string{"name: must be a string"}},
		{"a number for text", header + "name: 3", []string{"name: must be a string, not 3"}},
		{"text for a number", header + "work: {workers: \"3\"}", []string{`work.workers: must be a number, not "3"`}},
		{"half a number", header + "work: {workers: 1.5}", []string{"work.workers", "1.5"}},
		{"text for a switch", header + `work: {lead: "yes"}`, []string{"work.lead: must be true or false"}},
		{"text for a list", header + "kinds: b,c", []string{`kinds: must be a list of strings, not "b,c"`}},
		{"a list with a number", header + "kinds: [b, 3]", []string{"kinds: entry 2: must be a string, not 3"}},
		{"a list with a comma", header + `kinds: ["b,c"]`, []string{"kinds: entry 1", "comma"}},
		{"a pattern with a field more", header + "patterns: [{filePattern: a, verbosity: 1, level: 2}]", []string{`patterns: entry 1: unknown field "level"; known fields: filePattern, verbosity`}},
		{"half a pattern", header + "patterns: [{filePattern: a}]", []string{"patterns: entry 1: verbosity"}},
		{"a number for the text of a name", header + "names: {a: 1}", []string{"names: a: must be a string without commas, not 1"}},
		{"a comma in the text of a name", header + `names: {a: "b,c=d"}`, []string{"names: a: must be a string without commas"}},
		{"a list of names", header + "names: [a]", []string{"names: must map names to a string without commas"}},
		{"resources that are text", header + "resources: [x]", []string{"resources: entry 1: must be an object with namespaces, requests and limits"}},
		{"resources with another field", header + "resources: [{namespaces: [a], request: {cpu: 1}}]", []string{`resources: entry 1: unknown field "request"; known fields: namespaces, requests, limits`}},
		{"resources of no namespace", header + "resources: [{namespaces: [], requests: {cpu: 1}}]", []string{"resources: entry 1: namespaces: must list at least one namespace"}},
		{"resources without namespaces", header + "resources: [{requests: {cpu: 1}}]", []string{"resources: entry 1: namespaces: must be a list of strings, not null"}},
		{"a namespace that is a number", header + "resources: [{namespaces: [1], requests: {cpu: 1}}]", []string{"resources: entry 1: namespaces: entry 1: must be a string without commas, not 1"}},
		{"a namespace with a colon", header + `resources: [{namespaces: ["a:b"], requests: {cpu: 1}}]`, []string{"resources: entry 1: namespaces: entry 1:", "colon"}},
		{"a namespace without resources", header + "resources: [{namespaces: [a]}, {namespaces: [b]}]", []string{"resources: entry 1: must set requests or limits; {} for nothing"}},
		{"requests that are a list", header + "resources: [{namespaces: [a], requests: [cpu]}]", []string{`resources: entry 1: requests: must map resources to amounts, not ["cpu"]`}},
		{"an amount that is an object", header + "resources: [{namespaces: [a], limits: {cpu: {}}}]", []string{"resources: entry 1: limits: cpu: must be a number or a string without commas, not {}"}},
		{"two names of resources in one", header + `resources: [{namespaces: [a], limits: {"cpu,memory": 1}}]`, []string{`resources: entry 1: limits: "cpu,memory" is not the name of a resource`}},
		{"a type that is text", header + "types: [x]", []string{"types: entry 1: must be an object with resource, nodeLabel, nodeLabelValue and type"}},
		{"a type with another field", header + "types: [{resource: a/b, kind: a/c}]", []string{`types: entry 1: unknown field "kind"`}},
		{"a type with a label without a value", header + "types: [{resource: a/b, nodeLabel: model, type: a/c}]", []string{"types: entry 1: must set both of nodeLabel and nodeLabelValue, or neither"}},
		{"a type without a name", header + "types: [{resource: a/b}]", []string{"types: entry 1: type: must be a string without commas, not null"}},
		{"a type with a colon", header + `types: [{resource: "a/b:c", type: a/c}]`, []string{"types: entry 1: resource:", "colon"}},
		{"a key that occurs twice", header + "name: a\nname: b", []string{"name", "already"}},
		{"a key that occurs twice in JSON", `{"apiVersion": "config.kube-queue.dev/v1alpha1", "kind": "ThingConfiguration", "name": "a", "name": "b"}`, []string{"name", "already"}},
		{"a key of a section that occurs twice", header + "work: {workers: 1, workers: 2}", []string{"workers", "already"}},
		{"two objects", header + "---\n" + header, []string{"one object, not 2"}},
		{"nothing at all", "", []string{"one object, not 0"}},
		{"a list", "- a", []string{"must contain an object"}},
		{"what is no YAML", "\tname: {", []string{"yaml"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, file, err := readFile(t, c.text)
			require.ErrorSays(t, err, append(c.words, file)...)
		})
	}
}

func TestAFileThatIsNotThereIsRefused(t *testing.T) {
	require.ErrorSays(t, (&thing{}).declare().Read([]string{"--config=/no/such/file"}, nil), "--config: open /no/such/file")
}

func TestWhatAFlagAddsUpCountsAlone(t *testing.T) {
	o, _, err := readFile(t, header+"patterns: [{filePattern: a, verbosity: 1}]", "--patterns=b=2", "--patterns=c=3")
	require.NoError(t, err)
	if got := fmt.Sprint(o.patterns); got != "[{b 2} {c 3}]" {
		t.Errorf("patterns are %s", got)
	}
}

func TestThePlaceWhereAValueWasGivenIsKept(t *testing.T) {
	o := &thing{}
	set := o.declare()
	require.NoError(t, set.Read([]string{"--lead"}, []string{"ThingName=x", "OTHER=y"}))
	values, from := set.InForce()
	if got, want := fmt.Sprint(from), "map[name:environment variable ThingName work.lead:--lead]"; got != want {
		t.Errorf("given is %s, want %s", got, want)
	}
	if values["name"] != "x" || values["work.lead"] != true || fmt.Sprint(values["work.workers"]) != "1" {
		t.Errorf("in force is %v", values)
	}
}

func TestVariablesThatHaveNoEffectAreReported(t *testing.T) {
	set := (&thing{}).declare()
	require.NoError(t, set.Read(nil, []string{"OLD_THING=1", "THINGNAME=x", "ThingName=y", "PATH=/bin"}))
	if got, want := strings.Join(set.Ineffective(), "; "), "OLD_THING: it is old; THINGNAME: names are case-sensitive, use ThingName"; got != want {
		t.Errorf("reported is %q, want %q", got, want)
	}
}

func TestTheVersionIsReportedWhateverElseIsWrong(t *testing.T) {
	set := (&thing{}).declare()
	if err := set.Read([]string{"--version", "--config=/no/such/file", "--workers=0"}, nil); err != nil || !set.Version() {
		t.Errorf("version %t, error %v", set.Version(), err)
	}
}

func TestASettingThatLacksItsFlagOrItsFieldIsAFault(t *testing.T) {
	for _, c := range []struct {
		name string
		of   []settings.Setting
		want string
	}{
		{"a flag without a field", []settings.Setting{{Var: new(bool), Flag: "a", Field: "a"}, {Var: new(bool), Flag: "b"}}, "--b has no field"},
		{"a field without a flag", []settings.Setting{{Var: new(bool), Flag: "a", Field: "a"}, {Flag: "b", Field: "b"}}, `"b"`},
		{"two flags with one field", []settings.Setting{{Var: new(bool), Flag: "a", Field: "a"}, {Var: new(bool), Flag: "b", Field: "a"}}, "another has"},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := settings.New("thing", "ThingConfiguration")
			set.Group("All", c.of...)
			require.ErrorSays(t, set.Read(nil, nil), c.want)
		})
	}
}

func TestHelpHasHeadingsAndNamesTheVariables(t *testing.T) {
	var out strings.Builder
	(&thing{}).declare().Help(&out)
	require.Says(t, "the help", out.String(), "General flags:", "All flags:", "--config", "--version", "Environment variable: ThingName")
}

func FuzzAFileIsReadOrRefused(f *testing.F) {
	for _, text := range []string{header + "name: x", "---", "a: &a [*a]", `{"kind": 3}`, header + "patterns: [{filePattern: a, verbosity: 1}]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, file, err := readFile(t, text); err != nil && !strings.Contains(err.Error(), file) {
			t.Errorf("%q does not name the file", err)
		}
	})
}
