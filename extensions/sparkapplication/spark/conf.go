package spark

import (
	"fmt"

	"github.com/kubeflow/spark-operator/v2/api/v1beta2"
	"k8s.io/utils/ptr"
)

// Keys of settings that do not belong to one role.
const (
	overheadFactorKey   = "spark.kubernetes.memoryOverheadFactor"
	instancesKey        = "spark.executor.instances"
	dynamicKey          = "spark.dynamicAllocation.enabled"
	initialExecutorsKey = "spark.dynamicAllocation.initialExecutors"
	minExecutorsKey     = "spark.dynamicAllocation.minExecutors"
	maxExecutorsKey     = "spark.dynamicAllocation.maxExecutors"
	// nodeSelectorKey is followed by a node label.
	nodeSelectorKey = "spark.kubernetes.node.selector."
)

// conf has settings by key.
type conf map[string]setting

type setting struct {
	text string
	// field of the application that the setting comes from.
	field string
}

// confOf returns the settings of an application. It uses the operator's order, in which
// the last value of a key counts. So fields take precedence over spec.sparkConf, except
// for the memory overhead factor, and spec.sparkConf can enable dynamic allocation that
// spec.dynamicAllocation disables.
func confOf(spec *v1beta2.SparkApplicationSpec) conf {
	c := conf{}
	if factor := ptr.Deref(spec.MemoryOverheadFactor, ""); factor != "" {
		put(c, overheadFactorKey, &factor, "spec.memoryOverheadFactor")
	}
	for key, text := range spec.SparkConf {
		put(c, key, &text, "spec.sparkConf["+key+"]")
	}
	for label, value := range spec.NodeSelector {
		put(c, nodeSelectorKey+label, &value, "spec.nodeSelector["+label+"]")
	}
	c.putPods("driver", &spec.Driver.SparkPodSpec, spec.Driver.CoreRequest)
	c.putPods("executor", &spec.Executor.SparkPodSpec, spec.Executor.CoreRequest)
	put(c, instancesKey, spec.Executor.Instances, "spec.executor.instances")
	if dynamic := spec.DynamicAllocation; dynamic != nil && dynamic.Enabled {
		put(c, dynamicKey, &dynamic.Enabled, "spec.dynamicAllocation.enabled")
		put(c, initialExecutorsKey, dynamic.InitialExecutors, "spec.dynamicAllocation.initialExecutors")
		put(c, minExecutorsKey, dynamic.MinExecutors, "spec.dynamicAllocation.minExecutors")
		put(c, maxExecutorsKey, dynamic.MaxExecutors, "spec.dynamicAllocation.maxExecutors")
	}
	return c
}

func (c conf) putPods(role string, pods *v1beta2.SparkPodSpec, coreRequest *string) {
	spec, spark, kubernetes := "spec."+role+".", "spark."+role+".", "spark.kubernetes."+role+"."
	put(c, spark+"cores", pods.Cores, spec+"cores")
	put(c, kubernetes+"request.cores", coreRequest, spec+"coreRequest")
	put(c, kubernetes+"limit.cores", pods.CoreLimit, spec+"coreLimit")
	put(c, spark+"memory", pods.Memory, spec+"memory")
	put(c, spark+"memoryOverhead", pods.MemoryOverhead, spec+"memoryOverhead")
}

func put[T any](c conf, key string, value *T, field string) {
	if value != nil {
		c[key] = setting{text: fmt.Sprint(*value), field: field}
	}
}

// first returns the first of the keys that is set: Spark still reads the old names of
// some settings.
func (c conf) first(keys ...string) (setting, bool) {
	for _, key := range keys {
		if found, is := c[key]; is {
			return found, true
		}
	}
	return setting{}, false
}

func (s setting) wrong(format string, args ...any) error {
	return fmt.Errorf("%s: %q %s", s.field, s.text, fmt.Sprintf(format, args...))
}
