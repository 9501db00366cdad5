package standin

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/localcluster/internal/require"
)

const sparkTestID = "spark-00000000000000001111111111111111"

func TestArgumentsAreParsedLikeSparkSubmit(t *testing.T) {
	s, err := parseSparkSubmission(strings.Fields(
		"--master k8s://https://127.0.0.1:1 --deploy-mode cluster --class a.B --name pi --load-spark-defaults " +
			"--conf spark.a=1 --conf spark.b=x=y --conf spark.a=2 local:///a.py --conf spark.a=3"))
	want := &sparkSubmission{
		deployMode: "cluster", name: "pi", main: "local:///a.py",
		conf: sparkConf{"spark.a": "2", "spark.b": "x=y"},
	}
	if err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v, %v", s, err)
	}
}

// asJSON converts a value to generic types for comparison.
func asJSON(t *testing.T, value any) any {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	var plain any
	require.NoError(t, json.Unmarshal(data, &plain))
	return plain
}

func fromJSON(t *testing.T, text string) any {
	t.Helper()
	var plain any
	require.NoError(t, json.Unmarshal([]byte(text), &plain))
	return plain
}

func TestPropertiesOverrideTheTemplateOfTheDriver(t *testing.T) {
	var templates map[sparkRole]sparkPod
	err := json.Unmarshal([]byte(`{"driver": {
		"metadata": {
			"creationTimestamp": null,
			"labels": {"from": "template", "both": "template"},
			"ownerReferences": [{"kind": "SparkApplication", "name": "pi", "controller": true}]
		},
		"spec": {
			"restartPolicy": "Always",
			"tolerations": [{"operator": "Exists"}],
			"containers": [
				{"name": "side", "image": "side", "resources": {"requests": {"cpu": "1"}}},
				{"name": "main", "image": "template", "resources": {"requests": {"cpu": "9", "ephemeral-storage": "1Gi"}}}
			]
		}}}`), &templates)
	require.NoError(t, err)
	s := sparkApplication("a.jar",
		"spark.kubernetes.namespace=work", "spark.kubernetes.driver.pod.name=pi-driver",
		"spark.kubernetes.container.image=all", "spark.kubernetes.driver.container.image=own",
		"spark.kubernetes.driver.podTemplateContainerName=main",
		"spark.kubernetes.driver.label.both=property", "spark.kubernetes.executor.label.not=here",
		"spark.kubernetes.driver.annotation.localcluster.kube-queue.dev/run-time=3s",
		"spark.kubernetes.node.selector.zone=a", "spark.kubernetes.driver.node.selector.disk=fast",
		"spark.kubernetes.authenticate.driver.serviceAccountName=account", "spark.kubernetes.scheduler.name=other",
	)
	pod, err := s.driverPod(templates, sparkTestID)
	require.NoError(t, err)
	if pod.Metadata.Annotations[sparkExecutorsAnnotation] == "" {
		t.Error("the driver has no plan of executors")
	}
	delete(pod.Metadata.Annotations, sparkExecutorsAnnotation)
	want := fromJSON(t, `{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": {
			"name": "pi-driver", "namespace": "work",
			"labels": {"from": "template", "both": "property", "spark-role": "driver", "spark-app-selector": "`+sparkTestID+`"},
			"annotations": {"localcluster.kube-queue.dev/run-time": "3s"},
			"ownerReferences": [{"kind": "SparkApplication", "name": "pi", "controller": true}]
		},
		"spec": {
			"restartPolicy": "Never",
			"tolerations": [{"operator": "Exists"}],
			"nodeSelector": {"zone": "a", "disk": "fast"},
			"serviceAccountName": "account",
			"schedulerName": "other",
			"containers": [
				{"name": "side", "image": "side", "resources": {"requests": {"cpu": "1"}}},
				{"name": "main", "image": "own", "args": ["driver"], "resources": {
					"requests": {"cpu": "1", "memory": "1408Mi", "ephemeral-storage": "1Gi"},
					"limits": {"memory": "1408Mi"}
				}}
			]
		}}`)
	if got := asJSON(t, pod); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestExecutorsAreNumberedAndBelongToTheirDriver(t *testing.T) {
	s := sparkApplication("a.jar",
		"spark.kubernetes.container.image=all", "spark.executor.instances=3", "spark.executor.memory=512m",
		"spark.kubernetes.executor.label.app=pi", "spark.kubernetes.authenticate.driver.serviceAccountName=account",
	)
	s.name = "1 Very long name of an Application!"
	templates := map[sparkRole]sparkPod{sparkExecutorRole: {Metadata: metadata{
		OwnerReferences: []object{{"kind": "SparkApplication"}},
	}}}
	driver, err := s.driverPod(templates, sparkTestID)
	require.NoError(t, err)
	var plan executorPlan
	require.NoError(t, json.Unmarshal([]byte(driver.Metadata.Annotations[sparkExecutorsAnnotation]), &plan))
	if plan.Count != 3 || plan.Keep || driver.Metadata.Name != "1-very-long-name-of-an-applica-1111111111111111-driver" {
		t.Errorf("driver %s, plan %+v", driver.Metadata.Name, plan)
	}
	first, second := plan.executor(1, "pi-driver", "uid"), plan.executor(2, "pi-driver", "uid")
	want := fromJSON(t, `{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": {
			"name": "1-very-long-name-of-an-applica-1111111111111111-exec-2", "namespace": "default",
			"labels": {"app": "pi", "spark-role": "executor", "spark-exec-id": "2", "spark-app-selector": "`+sparkTestID+`"},
			"annotations": {"localcluster.kube-queue.dev/run-time": "never"},
			"ownerReferences": [
				{"kind": "SparkApplication"},
				{"apiVersion": "v1", "kind": "Pod", "name": "pi-driver", "uid": "uid", "controller": true}
			]
		},
		"spec": {
			"restartPolicy": "Never", "nodeSelector": {}, "serviceAccountName": "account",
			"containers": [{"name": "spark-kubernetes-executor", "image": "all", "args": ["executor"], "resources": {
				"requests": {"cpu": "1", "memory": "896Mi"}, "limits": {"memory": "896Mi"}
			}}]
		}}`)
	if got := asJSON(t, second); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if first.Metadata.Labels[sparkExecutorLabel] != "1" || len(first.Metadata.OwnerReferences) != 2 {
		t.Errorf("the second changed the first: %+v", first.Metadata)
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
