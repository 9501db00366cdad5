package podrunner

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestProgramIsTheLastPartOfTheImageName(t *testing.T) {
	for image, wantTag := range map[string]string{
		"kube-queue/job-extensions:v1":                         "v1",
		"registry.example.com:5000/kube-queue/job-extensions":  "",
		"job-extensions@sha256:0123":                           "",
		"registry.example.com:5000/a/job-extensions:v1@sha:01": "v1",
	} {
		if name, tag := program(image); name != "job-extensions" || tag != wantTag {
			t.Errorf("%s: %s with tag %q, want tag %q", image, name, tag, wantTag)
		}
	}
}

func TestProgramOfAnotherReleaseIsFoundByTag(t *testing.T) {
	options := Options{Programs: "/programs", Releases: map[string]string{"v1": "/earlier"}}
	for tag, want := range map[string]string{"v1": "/earlier", "v2": "/programs", "": "/programs"} {
		if got := options.folderOf(tag); got != want {
			t.Errorf("tag %q: %s, want %s", tag, got, want)
		}
	}
}

func TestAddressWithoutHostIsOnThePodsAddress(t *testing.T) {
	p := &pod{ip: "10.77.0.1", address: "127.77.0.1", runner: &Runner{options: Options{Programs: "/programs"}}, object: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "kube-queue"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Image: "kube-queue/job-extensions:v1",
			Args:  []string{"--health-bind-address=:8089", "--metrics-bind-address=0", "--profiling-bind-address=localhost:6060", "--enabled-extensions=job", "--webhook-advertise-address=[$(POD_IP)]:9443"},
			Env: []corev1.EnvVar{{Name: "QueueGroupPlugin", Value: "elasticquota"},
				{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}},
		}}},
	}}
	command, err := p.command(t.Context(), "/kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/programs/job-extensions", "--health-bind-address=127.77.0.1:8081", "--metrics-bind-address=127.77.0.1:8443", "--health-bind-address=127.77.0.1:8089", "--metrics-bind-address=0",
		"--profiling-bind-address=localhost:6060", "--enabled-extensions=job", "--webhook-advertise-address=[10.77.0.1]:9443"}
	if !slices.Equal(command.Args, want) {
		t.Errorf("got %q, want %q", command.Args, want)
	}
	for _, e := range []string{"KUBECONFIG=/kubeconfig", "QueueGroupPlugin=elasticquota", "POD_IP=10.77.0.1"} {
		if !slices.Contains(command.Env, e) {
			t.Errorf("the environment %q lacks %s", command.Env, e)
		}
	}
}
