package spark

import (
	"fmt"
	"testing"

	"github.com/kubeflow/spark-operator/v2/api/v1beta2"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/test/require"
)

// The operator has its own code that counts what an application requests, for a batch scheduler. It reads most fields
// and few settings. For an application that uses only those, both must agree to the byte.
func TestTheOperatorCountsTheSame(t *testing.T) {
	operator := startOperator(t)
	t.Run("whatever the fields say", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			app := drawApplication(t)
			want, err := operator.figures(app)
			require.NoError(t, err)
			if got := ours(app); got != want || got == refused {
				t.Fatalf("the pods request %s, the operator says %s", got, want)
			}
		})
	})
	t.Run("and its webhook makes the same of pods", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { mutateAlike(t, operator) })
	})
	for _, test := range differences {
		t.Run("but "+test.why, func(t *testing.T) {
			app := &v1beta2.SparkApplication{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(test.spec), &app.Spec))
			want, err := operator.figures(app)
			require.NoError(t, err)
			if want != test.operator {
				t.Errorf("the operator says %s, not %s", want, test.operator)
			}
			if got := ours(app); got != test.ours || got == want {
				t.Errorf("the pods request %s, not %s", got, test.ours)
			}
		})
	}
}

// differences are applications whose pods do not request the operator's figures, and why: Spark creates the pods, and
// Spark reads its settings.
var differences = []struct {
	why, spec, operator, ours string
}{
	{"it knows no defaults of Spark's", `{}`,
		"driver 1 384Mi, 2 executors 1 384Mi", "driver 1 1408Mi, 2 executors 1 1408Mi"},
	{"it does not look for sizes in the settings", `{sparkConf: {spark.driver.memory: 2g, spark.executor.memory: 4g}}`,
		"driver 1 384Mi, 2 executors 1 384Mi", "driver 1 2432Mi, 2 executors 1 4505Mi"},
	{"nor for overheads", `{type: Java, sparkConf: {spark.driver.memoryOverhead: "1", spark.yarn.executor.memoryOverhead: 2g}, driver: {memory: 1g}, executor: {memory: 1g}}`,
		"driver 1 1408Mi, 2 executors 1 1408Mi", "driver 1 1025Mi, 2 executors 1 3072Mi"},
	{"nor for the smallest overhead", `{type: Java, sparkConf: {spark.driver.minMemoryOverhead: "100", spark.executor.minMemoryOverhead: 1g}, driver: {memory: 1g}, executor: {memory: 1g}}`,
		"driver 1 1408Mi, 2 executors 1 1408Mi", "driver 1 1126Mi, 2 executors 1 2048Mi"},
	{"nor for factors, the one that the field has too wins there", `{memoryOverheadFactor: "0.5", sparkConf: {spark.kubernetes.memoryOverheadFactor: "0.2", spark.driver.memoryOverheadFactor: "1"}, driver: {memory: 10g}, executor: {memory: 10g}}`,
		"driver 1 15360Mi, 2 executors 1 15360Mi", "driver 1 20480Mi, 2 executors 1 12288Mi"},
	{"nor for cores", `{sparkConf: {spark.driver.cores: "2", spark.kubernetes.executor.request.cores: 300m}, driver: {memory: 512m}, executor: {cores: 3, memory: 512m}}`,
		"driver 1 896Mi, 2 executors 3 896Mi", "driver 2 896Mi, 2 executors 300m 896Mi"},
	{"nor for a number of executors", `{sparkConf: {spark.executor.instances: "5"}, driver: {memory: 512m}, executor: {memory: 512m}}`,
		"driver 1 896Mi, 2 executors 1 896Mi", "driver 1 896Mi, 5 executors 1 896Mi"},
	{"nor for dynamic allocation", `{sparkConf: {spark.dynamicAllocation.enabled: "true", spark.dynamicAllocation.minExecutors: "7"}, driver: {memory: 512m}, executor: {memory: 512m}}`,
		"driver 1 896Mi, 2 executors 1 896Mi", "driver 1 896Mi, 7 executors 1 896Mi"},
	{"a field that switches dynamic allocation off is not handed on", `{dynamicAllocation: {enabled: false, minExecutors: 9}, sparkConf: {spark.dynamicAllocation.enabled: "true", spark.dynamicAllocation.minExecutors: "5"}, driver: {memory: 512m}, executor: {instances: 3, memory: 512m}}`,
		"driver 1 896Mi, 3 executors 1 896Mi", "driver 1 896Mi, 5 executors 1 896Mi"},
	{"so that one executor may become none", `{dynamicAllocation: {enabled: false}, sparkConf: {spark.dynamicAllocation.enabled: "true"}, driver: {memory: 512m}, executor: {memory: 512m}}`,
		"driver 1 896Mi, 2 executors 1 896Mi", "driver 1 896Mi, 0 executors 1 896Mi"},
	{"Spark takes a bare number for MiB", `{driver: {memory: "512"}, executor: {memory: "512", memoryOverhead: "100"}}`,
		refused, "driver 1 896Mi, 2 executors 1 612Mi"},
	{"Spark does not mind spaces", `{driver: {memory: " 512m "}, executor: {memory: 512m}}`,
		refused, "driver 1 896Mi, 2 executors 1 896Mi"},
	{"Spark takes a bare number off the heap for bytes", `{sparkConf: {spark.memory.offHeap.enabled: "true", spark.memory.offHeap.size: "2097152"}, driver: {memory: 512m}, executor: {memory: 512m}}`,
		refused, "driver 1 896Mi, 2 executors 1 898Mi"},
	{"a part of the memory goes no further than 2 Pi", `{memoryOverheadFactor: "4", driver: {memory: 512t}, executor: {memory: 512m}}`,
		"driver 1 2684354560Mi, 2 executors 1 2560Mi", "driver 1 2684354559Mi, 2 executors 1 2560Mi"},
	{"Spark counts each part in whole MiB, the operator only the sum", `{driver: {memory: 2560k, memoryOverhead: 1536k}, executor: {memory: 512m}}`,
		"driver 1 4Mi, 2 executors 1 896Mi", "driver 1 3Mi, 2 executors 1 896Mi"},
	{"Spark decides by the name of the file, not by the type", `{type: Scala, mainApplicationFile: local:///a.py, sparkConf: {spark.executor.pyspark.memory: 1g}, driver: {memory: 10g}, executor: {memory: 10g}}`,
		"driver 1 11264Mi, 2 executors 1 11264Mi", "driver 1 14336Mi, 2 executors 1 15360Mi"},
	{"so a type may be wrong the other way too", `{type: R, mainApplicationFile: local:///a.jar, driver: {memory: 10g}, executor: {memory: 10g}}`,
		"driver 1 14336Mi, 2 executors 1 14336Mi", "driver 1 11264Mi, 2 executors 1 11264Mi"},
	{"Spark takes what has no type for Java", `{driver: {memory: 10g}, executor: {memory: 10g}}`,
		"driver 1 14336Mi, 2 executors 1 14336Mi", "driver 1 11264Mi, 2 executors 1 11264Mi"},
	{"in client mode there is no driver pod, nor is Python found out", `{type: Python, mode: client, mainApplicationFile: local:///a.py, driver: {memory: 10g}, executor: {memory: 10g}}`,
		"driver 1 14336Mi, 2 executors 1 14336Mi", "driver none, 2 executors 1 11264Mi"},
	{"Spark switches off in capitals too", `{sparkConf: {spark.memory.offHeap.enabled: "FALSE", spark.memory.offHeap.size: 1g}, driver: {memory: 512m}, executor: {memory: 512m}}`,
		"driver 1 896Mi, 2 executors 1 1920Mi", "driver 1 896Mi, 2 executors 1 896Mi"},
	{"Spark refuses no memory", `{driver: {memory: 0m}, executor: {memory: 512m}}`,
		"driver 1 384Mi, 2 executors 1 896Mi", refused},
	{"Spark refuses a negative factor", `{memoryOverheadFactor: "-1", driver: {memory: 512m}, executor: {memory: 512m}}`,
		"driver 1 896Mi, 2 executors 1 896Mi", refused},
	{"its numbers wrap", `{type: Java, driver: {memory: 16385p}, executor: {memory: 512m}}`,
		"driver 1 1181116006Mi, 2 executors 1 896Mi", refused},
	{"Kubernetes refuses less than no cores", `{driver: {memory: 512m, coreRequest: "-1"}, executor: {memory: 512m}}`,
		"driver -1 896Mi, 2 executors 1 896Mi", refused},
	{"Spark refuses to start with more executors than the most", `{dynamicAllocation: {enabled: true, initialExecutors: 3, maxExecutors: 2}, driver: {memory: 512m}, executor: {memory: 512m}}`,
		"driver 1 896Mi, 3 executors 1 896Mi", refused},
}

// drawApplication draws an application that uses only what the operator reads.
func drawApplication(t *rapid.T) *v1beta2.SparkApplication {
	app := &v1beta2.SparkApplication{}
	spec := &app.Spec
	spec.Type = rapid.SampledFrom([]v1beta2.SparkApplicationType{"Java", "Scala", "Python", "R"}).Draw(t, "type")
	if rapid.Bool().Draw(t, "with a file") {
		end := map[v1beta2.SparkApplicationType]string{"Java": ".jar", "Scala": ".jar", "Python": ".py", "R": ".R"}[spec.Type]
		spec.MainApplicationFile = ptr.To("local:///app" + end)
	}
	if rapid.Bool().Draw(t, "with a factor") {
		spec.MemoryOverheadFactor = ptr.To(fmt.Sprint(rapid.Float64Range(0, 4).Draw(t, "factor")))
	}
	drawPods(t, &spec.Driver.SparkPodSpec, &spec.Driver.CoreRequest)
	drawPods(t, &spec.Executor.SparkPodSpec, &spec.Executor.CoreRequest)
	spec.SparkConf = map[string]string{
		"spark.memory.offHeap.enabled":  rapid.SampledFrom([]string{"true", "false"}).Draw(t, "off heap"),
		"spark.memory.offHeap.size":     drawSize(t),
		"spark.executor.pyspark.memory": rapid.SampledFrom([]string{drawSize(t), "700"}).Draw(t, "Python's"),
		"spark.driver.extraJavaOptions": "-Dx=y",
	}
	if rapid.Bool().Draw(t, "with dynamic allocation") {
		spec.DynamicAllocation = &v1beta2.DynamicAllocation{
			Enabled:          rapid.Bool().Draw(t, "enabled"),
			InitialExecutors: drawCount(t, 0), MinExecutors: drawCount(t, 0), MaxExecutors: ptr.To(int32(1000)),
		}
	}
	spec.Executor.Instances = drawCount(t, 1)
	return app
}

func drawPods(t *rapid.T, pods *v1beta2.SparkPodSpec, coreRequest **string) {
	pods.Cores = drawCount(t, 1)
	pods.CoreLimit = rapid.SampledFrom([]*string{nil, ptr.To("1200m")}).Draw(t, "core limit")
	*coreRequest = rapid.SampledFrom([]*string{nil, ptr.To("500m"), ptr.To("1.5"), ptr.To("0"), ptr.To("3")}).Draw(t, "core request")
	pods.Memory = ptr.To(drawSize(t))
	if rapid.Bool().Draw(t, "with an overhead") {
		pods.MemoryOverhead = ptr.To(drawSize(t))
	}
}

func drawCount(t *rapid.T, least int32) *int32 {
	return rapid.Ptr(rapid.Int32Range(least, 1000), true).Draw(t, "number")
}

// drawSize draws whole MiB in any notation.
func drawSize(t *rapid.T) string {
	number := rapid.Int64Range(1, 200_000).Draw(t, "MiB")
	unit := rapid.SampledFrom([]string{"b", "k", "kb", "K", "m", "mb", "M", "MB", "g", "Gb", "t", "TB"}).Draw(t, "unit")
	switch unit[0] {
	case 'b':
		number <<= 20
	case 'k', 'K':
		number <<= 10
	case 't', 'T':
		number = number%100 + 1
	}
	return fmt.Sprintf("%d%s", number, unit)
}
