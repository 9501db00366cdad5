package standin

import (
	"strings"
	"testing"
)

// The simulation ignores the effects of these properties, so the pods would differ from Spark's.
func TestPropertiesThatAreNotSimulatedAreRefused(t *testing.T) {
	for _, key := range []string{
		"spark.kubernetes.memoryOverheadFactor", "spark.driver.memoryOverheadFactor", "spark.driver.minMemoryOverhead",
		"spark.driver.resource.gpu.amount", "spark.memory.offHeap.enabled", "spark.executor.pyspark.memory",
	} {
		s := &sparkSubmission{main: "a.jar", conf: sparkConf{key: "1"}}
		if _, err := s.resources(sparkDriverRole); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: got %v", key, err)
		}
	}
}

func TestOnlyTemplatesOfTheOperatorAreRemoved(t *testing.T) {
	for path, want := range map[string]bool{
		"/tmp/spark/c3700796-e097-4a10-9259-0d63aec55701/driver-pod-template.yaml":      true,
		"/tmp/spark/c3700796-e097-4a10-9259-0d63aec55701/executor-pod-template.yaml":    true,
		"/tmp/spark/c3700796-e097-4a10-9259-0d63aec55701/other.yaml":                    false,
		"/tmp/spark/mine/driver-pod-template.yaml":                                      false,
		"/home/tmp/spark/c3700796-e097-4a10-9259-0d63aec55701/driver-pod-template.yaml": false,
	} {
		if operatorsTemplate.MatchString(path) != want {
			t.Errorf("%s: want %v", path, want)
		}
	}
}
