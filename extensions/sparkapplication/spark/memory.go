package spark

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/kubeflow/spark-operator/v2/api/v1beta2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// In MiB, as Spark counts.
const (
	unsetMemory   = 1024
	unsetOverhead = 384
	mostMemory    = math.MaxInt64 >> 20
)

// language decides about memory beside the Java heap.
type language int

const (
	inJava language = iota
	inPython
	inR
)

// languageOf goes by the name of the file, as spark-submit does: the operator does
// not tell Spark the type. In the client modes the driver does not find out, and
// takes every application for Java.
func languageOf(spec *v1beta2.SparkApplicationSpec) language {
	file := ptr.Deref(spec.MainApplicationFile, "")
	switch {
	case clientMode(spec):
		return inJava
	case strings.HasSuffix(file, ".py"), file == "" && spec.Type == v1beta2.SparkApplicationTypePython:
		return inPython
	case strings.HasSuffix(strings.ToLower(file), ".r"), file == "" && spec.Type == v1beta2.SparkApplicationTypeR:
		return inR
	}
	return inJava
}

func clientMode(spec *v1beta2.SparkApplicationSpec) bool {
	return spec.Mode == v1beta2.DeployModeClient || spec.Mode == v1beta2.DeployModeInClusterClient
}

// memory is what a pod of the role asks for. Each part is whole MiB by itself.
func (r role) memory(c conf, language language) (resource.Quantity, error) {
	heap, err := c.positive(mib, unsetMemory, "spark."+r.name+".memory")
	if err != nil {
		return resource.Quantity{}, err
	}
	overhead, err := r.overhead(c, language, heap)
	if err != nil {
		return resource.Quantity{}, err
	}
	beside := int64(0)
	if r.name == executorRole {
		if beside, err = besideHeap(c, language); err != nil {
			return resource.Quantity{}, err
		}
	}
	// None of the parts is over 2^43 MiB, so that the sum cannot wrap.
	total := heap + overhead + beside
	if total > mostMemory {
		return resource.Quantity{}, fmt.Errorf("spec.%s: memory and what Spark adds to it are more than can be counted", r.name)
	}
	return *resource.NewQuantity(total<<20, resource.BinarySI), nil
}

// overhead is as it is set, or a part of the heap, but not less than a minimum,
// which Spark 4 lets one set.
func (r role) overhead(c conf, language language, heap int64) (int64, error) {
	spark := "spark." + r.name + "."
	overhead, given, err := c.size(mib, spark+"memoryOverhead", "spark.yarn."+r.name+".memoryOverhead")
	if given {
		return overhead, err
	}
	usual := 0.1
	if language != inJava {
		usual = 0.4
	}
	factor, err := c.factor(usual, spark+"memoryOverheadFactor", overheadFactorKey)
	if err != nil {
		return 0, err
	}
	least, given, err := c.size(mib, spark+"minMemoryOverhead")
	if err != nil {
		return 0, err
	}
	if !given {
		least = unsetOverhead
	}
	// Spark, too, goes no further.
	part := min(factor*float64(heap), math.MaxInt32)
	return max(int64(part), least), nil
}

// besideHeap is what executors have besides: memory off the heap, and that of
// Python's own processes where a limit is set for it.
func besideHeap(c conf, language language) (int64, error) {
	on, err := c.on("spark.memory.offHeap.enabled", "spark.unsafe.offHeap")
	if err != nil {
		return 0, err
	}
	total := int64(0)
	if on {
		offHeap, _, err := c.size(bytes, "spark.memory.offHeap.size")
		if err != nil {
			return 0, err
		}
		total += offHeap >> 20
	}
	if language == inPython {
		limit, _, err := c.size(mib, "spark.executor.pyspark.memory")
		if err != nil {
			return 0, err
		}
		total += limit
	}
	return total, nil
}

// javaUnit is the end of a size as Java writes it.
var javaUnit = regexp.MustCompile(`[kmgtp]b?$`)

// memoryLimit reads a limit as the webhook does: like Java where the unit is one
// of Java's in small letters, else like Kubernetes.
func memoryLimit(text string) (resource.Quantity, error) {
	kubernetes := text
	if unit := javaUnit.FindString(text); unit != "" {
		kubernetes = strings.TrimSuffix(text, unit) + strings.ToUpper(unit[:1]) + "i"
	}
	limit, err := parseQuantity(kubernetes)
	// The webhook makes nonsense of Java's units in capitals.
	if err != nil || limit.Sign() < 0 || kubernetes == text && javaUnit.MatchString(strings.ToLower(text)) {
		return limit, fmt.Errorf("%q is no size that the operator reads: write 2g or 2Gi", text)
	}
	return limit, nil
}
