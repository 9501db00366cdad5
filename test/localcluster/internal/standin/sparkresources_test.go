package standin

import (
	"maps"
	"strings"
	"testing"
)

func sparkApplication(main string, conf ...string) *sparkSubmission {
	s := &sparkSubmission{name: "app", deployMode: "cluster", main: main, conf: sparkConf{}}
	for _, one := range conf {
		key, value, _ := strings.Cut(one, "=")
		s.conf[key] = value
	}
	return s
}

func TestResourcesAreThoseOfSpark(t *testing.T) {
	const jar, python, r = "local:///a.jar", "local:///a.py", "local:///a.R"
	tests := []struct {
		name             string
		role             sparkRole
		main             string
		conf             []string
		requests, limits map[string]string
	}{
		{"nothing said", sparkDriverRole, jar, nil,
			map[string]string{"cpu": "1", "memory": "1408Mi"}, map[string]string{"memory": "1408Mi"}},
		{"a limit of cores changes no request", sparkDriverRole, jar,
			[]string{"spark.driver.cores=1", "spark.kubernetes.driver.limit.cores=1200m", "spark.driver.memory=512m"},
			map[string]string{"cpu": "1", "memory": "896Mi"}, map[string]string{"cpu": "1200m", "memory": "896Mi"}},
		{"requested cores come before cores", sparkExecutorRole, jar,
			[]string{"spark.executor.cores=4", "spark.kubernetes.executor.request.cores=500m"},
			map[string]string{"cpu": "500m", "memory": "1408Mi"}, map[string]string{"memory": "1408Mi"}},
		{"the other role's properties are not meant", sparkExecutorRole, jar,
			[]string{"spark.driver.cores=4", "spark.driver.memory=8g", "spark.driver.memoryOverhead=1g"},
			map[string]string{"cpu": "1", "memory": "1408Mi"}, map[string]string{"memory": "1408Mi"}},
		{"a tenth, cut off, where that is more than the least", sparkDriverRole, jar, []string{"spark.driver.memory=4099m"},
			map[string]string{"cpu": "1", "memory": "4508Mi"}, map[string]string{"memory": "4508Mi"}},
		{"more for Python", sparkDriverRole, python, []string{"spark.driver.memory=2g"},
			map[string]string{"cpu": "1", "memory": "2867Mi"}, map[string]string{"memory": "2867Mi"}},
		{"more for R", sparkExecutorRole, r, []string{"spark.executor.memory=2g"},
			map[string]string{"cpu": "1", "memory": "2867Mi"}, map[string]string{"memory": "2867Mi"}},
		{"an overhead comes before the least", sparkDriverRole, jar,
			[]string{"spark.driver.memoryOverhead=10", "spark.driver.memory=1024"},
			map[string]string{"cpu": "1", "memory": "1034Mi"}, map[string]string{"memory": "1034Mi"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := sparkApplication(test.main, test.conf...).resources(test.role)
			if err != nil || !maps.Equal(got.requests, test.requests) || !maps.Equal(got.limits, test.limits) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestInvalidPropertiesAreRefused(t *testing.T) {
	for _, conf := range []string{
		"spark.driver.memory=0.5g", "spark.driver.memory=much", "spark.driver.memory=99999999999p",
		"spark.driver.cores=0.5", "spark.driver.memoryOverhead=little",
		// The simulation does not compute these.
		"spark.kubernetes.memoryOverheadFactor=0.5", "spark.driver.memoryOverheadFactor=0.5", "spark.driver.minMemoryOverhead=1g",
		"spark.driver.resource.gpu.amount=1", "spark.memory.offHeap.enabled=true", "spark.executor.pyspark.memory=512",
	} {
		key, _, _ := strings.Cut(conf, "=")
		if _, err := sparkApplication("a.jar", conf).resources(sparkDriverRole); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: got %v", conf, err)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"512": 512, "512m": 512, "512MB": 512, "2g": 2048, "1Tb": 1 << 20, "1p": 1 << 30, "3000k": 2, "5242880b": 5, "0": 0,
	} {
		if got, err := (sparkConf{"size": text}).mebibytes("size", 0); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestNumberOfExecutors(t *testing.T) {
	const dynamic = "spark.dynamicAllocation.enabled=true"
	for want, confs := range map[int][][]string{
		0: {{"spark.executor.instances=0"}, {dynamic}},
		2: {nil, {"spark.dynamicAllocation.initialExecutors=5"}},
		3: {
			{"spark.executor.instances=3"},
			{dynamic, "spark.executor.instances=3", "spark.dynamicAllocation.minExecutors=1"},
			{dynamic, "spark.dynamicAllocation.initialExecutors=3", "spark.dynamicAllocation.maxExecutors=9"},
			{dynamic, "spark.dynamicAllocation.minExecutors=3"},
		},
	} {
		for _, conf := range confs {
			if got, err := sparkApplication("a.jar", conf...).conf.executors(); err != nil || got != want {
				t.Errorf("%v: got %d, %v, want %d", conf, got, err, want)
			}
		}
	}
	if _, err := sparkApplication("a.jar", "spark.executor.instances=many").conf.executors(); err == nil {
		t.Error("an invalid number was accepted")
	}
}
