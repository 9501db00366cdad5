package resources

import (
	"math"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func TestParseReadsWhatKubernetesReads(t *testing.T) {
	for _, s := range []string{"0", "2", "500m", "1.5", "4Gi", "1E", "1Ei", "5e3", "5E3", "1e-3", " 5G ", "+1", "-1"} {
		got, err := Parse(s)
		if want := resource.MustParse(strings.TrimSpace(s)); err != nil || got.Cmp(want) != 0 {
			t.Errorf("Parse(%q) = %s, %v, want %s", s, got.String(), err, want.String())
		}
	}
}

func TestParseRefusesWhatIsNoQuantity(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"", "is not a number"},
		{"abc", "is not a number"},
		{"4GB", "is not a number"},
		{"1,5", "is not a number"},
		{"twelve", "is not a number"},
		{".e-2000000000", "is not a number"},
		{"1Ge5Gi", "is not a number"},
		{"1e", "exponent"},
		{"1e-2000000000", "exponent"},
		{"1e2000000000", "exponent"},
		{"1e4294967296", "exponent"},
		{"1e65", "exponent"},
		{"1e99999999999999999999", "exponent"},
		{strings.Repeat("9", 100), "is longer than"},
	} {
		if q, err := Parse(c.text); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("Parse(%q) = %s, %v, want an error that says %q", c.text, q.String(), err, c.says)
		}
	}
}

func TestFormatWritesWhatUsersWrite(t *testing.T) {
	for _, c := range []struct {
		name  string
		value int64
		want  string
	}{
		{"cpu", 3000, "3"},
		{"cpu", 500, "500m"},
		{"cpu", 1500, "1500m"},
		{"cpu", 999900000, "999900"},
		{"cpu", 0, "0"},
		{"cpu", -500, "-500m"},
		{"requests.cpu", 4000, "4"},
		{"memory", 4294967296, "4Gi"},
		{"memory", 5000000000, "5G"},
		{"memory", 456 << 20, "456Mi"},
		{"memory", 1792 << 20, "1792Mi"},
		{"memory", 128000, "128k"},
		{"memory", 1234567, "1234567"},
		{"memory", 1023, "1023"},
		{"memory", 0, "0"},
		{"memory", -4294967296, "-4Gi"},
		{"memory", math.MaxInt64, "9223372036854775807"},
		{"memory", math.MinInt64, "-8Ei"},
		{"limits.memory", 1 << 30, "1Gi"},
		{"ephemeral-storage", 10 << 30, "10Gi"},
		{"hugepages-2Mi", 4 << 20, "4Mi"},
		{"nvidia.com/gpu", 8, "8"},
		{"kube-queue/max-jobs", 10000, "10000"},
		{"", 7, "7"},
	} {
		if got := Format(c.name, c.value); got != c.want {
			t.Errorf("Format(%q, %d) = %q, want %q", c.name, c.value, got, c.want)
		}
		if allocations := testing.AllocsPerRun(10, func() { Format(c.name, c.value) }); allocations > 1 {
			t.Errorf("Format(%q, %d) allocates %v times", c.name, c.value, allocations)
		}
	}
}

func TestAQuantityIsWrittenAsUsersWriteItWhateverItIsTheSumOf(t *testing.T) {
	sum := resource.MustParse("8G")
	sum.Add(resource.MustParse("200Mi"))
	list := map[string]resource.Quantity{"memory": sum, "cpu": resource.MustParse("0.5"), "storage": resource.MustParse("100m")}
	Rewrite(list)
	for name, want := range map[string]string{"memory": "8017300Ki", "cpu": "500m", "storage": "100m"} {
		if q := list[name]; q.String() != want {
			t.Errorf("%s in an object: %s, want %s", name, q.String(), want)
		}
	}
	for _, c := range []struct{ name, text, want string }{
		{"memory", "8209715200", "8017300Ki"}, {"memory", "1048576Ki", "1Gi"}, {"memory", "1500m", "1500m"}, {"memory", "-1Gi", "-1Gi"},
		{"cpu", "1.5", "1500m"}, {"cpu", "4k", "4000"}, {"nvidia.com/gpu", "4k", "4000"}, {"nvidia.com/gpu", "500m", "500m"},
	} {
		if got := FormatQuantity(c.name, resource.MustParse(c.text)); got != c.want {
			t.Errorf("%s %s is written as %s, want %s", c.name, c.text, got, c.want)
		}
	}
}

func TestFormatIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"cpu", "memory", "nvidia.com/gpu"}).Draw(t, "name")
		value := rapid.OneOf(rapid.Int64Min(0), rapid.Map(rapid.Int64Range(0, 1<<20), func(v int64) int64 { return v << 20 })).Draw(t, "value")
		q, err := Parse(Format(name, value))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := LimitValue(name, q); err != nil || got != value {
			t.Fatalf("%d was written as %s and read as %d, %v", value, q.String(), got, err)
		}
	})
}

func TestAQuantityWithTheSuffixOfOtherProgramsSaysWhatWasMeant(t *testing.T) {
	for text, want := range map[string]string{
		"10Gb": `did you mean "10Gi" or "10G"?`, "10 GB": `did you mean "10Gi" or "10G"?`, "1.5gib": `did you mean "1.5Gi"?`,
		"64gi": `did you mean "64Gi"?`, "5kb": `did you mean "5Ki" or "5k"?`, "7K": `did you mean "7Ki" or "7k"?`,
		"10x": "such as 2, 500m, 1.5 or 4Gi", "Gb": "such as 2, 500m, 1.5 or 4Gi", "all": "such as 2, 500m, 1.5 or 4Gi", "": "such as 2, 500m, 1.5 or 4Gi",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want one that says %s", text, err, want)
		}
	}
}
