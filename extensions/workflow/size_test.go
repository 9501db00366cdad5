package workflow

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/test/require"
)

func TestSizesAreReadInYAMLAndJSON(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want map[corev1.ResourceName]string
	}{
		"a block of YAML":             {"cpu: 5\nmemory: 5G\n", map[corev1.ResourceName]string{"cpu": "5", "memory": "5000000000"}},
		"a line of YAML":              {"{cpu: 500m, memory: 1Gi}", map[corev1.ResourceName]string{"cpu": "500m", "memory": "1Gi"}},
		"JSON":                        {`{"cpu":"5","nvidia.com/gpu":8}`, map[corev1.ResourceName]string{"cpu": "5", "nvidia.com/gpu": "8"}},
		"JSON on lines with tabs":     {"{\n\t\"cpu\": \"5\",\n\t\"memory\": 1024\n}", map[corev1.ResourceName]string{"cpu": "5", "memory": "1Ki"}},
		"a slash that JSON escaped":   {`{"nvidia.com\/gpu":1}`, map[corev1.ResourceName]string{"nvidia.com/gpu": "1"}},
		"broken numbers":              {"cpu: 0.5\nmemory: .5Gi", map[corev1.ResourceName]string{"cpu": "500m", "memory": "512Mi"}},
		"a number with an exponent":   {"memory: 5e9\nephemeral-storage: \"1e3\"", map[corev1.ResourceName]string{"memory": "5G", "ephemeral-storage": "1k"}},
		"a number that no float has":  {"memory: 9007199254740991", map[corev1.ResourceName]string{"memory": "9007199254740991"}},
		"huge pages":                  {"hugepages-2Mi: 4Mi", map[corev1.ResourceName]string{"hugepages-2Mi": "4Mi"}},
		"comments, and room around":   {"# what it needs\n  cpu: ' 2 '\n\n", map[corev1.ResourceName]string{"cpu": "2"}},
		"a zero":                      {"cpu: 0", map[corev1.ResourceName]string{"cpu": "0"}},
		"nothing, where it says that": {"{}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseSize(test.text)
			require.NoError(t, err)
			want := corev1.ResourceList{}
			for name, text := range test.want {
				want[name] = resource.MustParse(text)
			}
			if !equality.Semantic.DeepEqual(got, want) || got == nil {
				t.Errorf("it is read as %v, not %v", got, want)
			}
		})
	}
}

func TestSizesThatCannotBeReadSayWhy(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		says []string
	}{
		"nothing":                      {"", []string{"the value is not a map"}},
		"a word":                       {"much", []string{"the value is not a map"}},
		"a list":                       {"[cpu, 5]", []string{"the value is not a map"}},
		"broken YAML":                  {"cpu: 5: 6", []string{"the value cannot be parsed: yaml: "}},
		"broken JSON":                  {`{"cpu": `, []string{"the value cannot be parsed"}},
		"a resource given twice":       {"cpu: 5\ncpu: 6", []string{"the value cannot be parsed", `"cpu" already set`}},
		"one given twice in JSON":      {`{"cpu":5,"cpu":6}`, []string{"the value cannot be parsed", `"cpu"`}},
		"a number too large for JSON":  {`{"cpu":1e1000000000}`, []string{"the value cannot be parsed", "1e1000000000"}},
		"a negative number":            {"cpu: -5", []string{"cpu: -5 is negative"}},
		"more than can be counted":     {"memory: 100E", []string{"memory: 100E exceeds the largest possible request"}},
		"an exponent forever":          {`{"cpu": "1e-1000000000"}`, []string{`cpu: quantity "1e-1000000000": the exponent`}},
		"a number with such":           {`cpu: 1e1000000000`, []string{`cpu: quantity "1e1000000000": the exponent`}},
		"no number at all":             {"cpu: .nan", []string{"the value cannot be parsed"}},
		"a number without end":         {"cpu: .inf", []string{"the value cannot be parsed"}},
		"a suffix that is none":        {"memory: 5GB", []string{`memory: quantity "5GB" is not a number`}},
		"a truth":                      {"cpu: true", []string{"the quantity of cpu must be a number or a string"}},
		"an empty value":               {"cpu:", []string{"the quantity of cpu must be a number or a string"}},
		"a map in it":                  {"cpu: {requests: 1}", []string{"the quantity of cpu must be a number or a string"}},
		"a name that no resource has":  {"gpu: 1", []string{`"gpu" is not a resource`}},
		"one in other letters":         {"CPU: 1", []string{`"CPU" is not a resource`}},
		"one with two slashes":         {"a/b/c: 1", []string{`"a/b/c" is not a resource`}},
		"the name of a quota":          {"requests.nvidia.com/gpu: 1", []string{`"requests.nvidia.com/gpu" is not a resource`}},
		"huge pages of no size":        {"hugepages-x: 1", []string{`"hugepages-x" is not a resource`}},
		"a name that is a number":      {"5: 5", []string{`"5" is not a resource`}},
		"more than one fault":          {"cpu: -1\ngpu: 1", []string{"cpu: -1 is negative", `"gpu" is not a resource`}},
		"a text that nobody wrote":     {"cpu: 1 #" + strings.Repeat("x", maxSize), []string{"longer than 8192 characters"}},
		"a quantity that nobody wrote": {"cpu: '" + strings.Repeat("1", 99) + "'", []string{"cpu: quantity", "is longer than 64 characters"}},
		"a tree of references":         {bomb(), []string{"annotation"}},
		"a deep hole":                  {strings.Repeat("[", maxSize), []string{"the value cannot be parsed"}},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			size, err := parseSize(test.text)
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
			if err == nil {
				t.Fatalf("it is read as %v", size)
			}
			require.ErrorSays(t, err, append(test.says, "annotation kube-queue/min-resources: ", `"{cpu: 5, memory: 5Gi}"`)...)
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("it says more than one line: %q", err)
			}
		})
	}
}

// bomb returns a short text that expands to billions of words.
func bomb() string {
	text := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		before := string(c - 1)
		text += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+before+",", 9), ",") + "]\n"
	}
	return text
}

func TestNoSizeIsNegativeAndNoneAPanic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(rapid.SampledFrom([]string{
			"cpu", "memory", "nvidia.com/gpu", ": ", ":", "\n", "{", "}", "[", "]", ",", `"`, "'", "-", "5", "5G", "0.5", "1e9", "-1", "&a", "*a", "<<", "!!int", "~", "# ", "|", "? ", "\t",
		}), rapid.String())
		text := strings.Join(rapid.SliceOfN(word, 0, 12).Draw(t, "words"), "")
		size, err := parseSize(text)
		if (err == nil) != (size != nil) {
			t.Fatalf("%q is read as %v, with the error %v", text, size, err)
		}
		for name, quantity := range size {
			if quantity.Sign() < 0 || name == "" {
				t.Fatalf("%q requests %s of %q", text, quantity.String(), name)
			}
		}
	})
}
