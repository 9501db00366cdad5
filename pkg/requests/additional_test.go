package requests

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"kube-queue.dev/kube-queue/test/require"
)

// additional reads additional resources; the test fails if they are invalid.
func additional(t *testing.T, text string) Additional {
	t.Helper()
	all, err := ParseAdditional(text)
	require.NoError(t, err)
	return all
}

func TestAdditionalResourcesAreRead(t *testing.T) {
	got := additional(t, "team-a:requests.cpu=100m:limits.cpu=1:limits.memory=128Mi,team-b:,*:requests.example.com/gpu=2:requests.memory=0.0001")
	want := Additional{
		"team-a": {Requests: list(t, `{cpu: 100m, memory: 128Mi}`), Limits: list(t, `{cpu: 1, memory: 128Mi}`)},
		"team-b": {Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}},
		"*":      {Requests: list(t, `{example.com/gpu: 2, memory: 1m}`), Limits: corev1.ResourceList{}},
	}
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := additional(t, ""); len(got) != 0 {
		t.Errorf("an empty text came to %v", got)
	}
}

func TestAdditionalResourcesThatCannotBeCountedAreRefused(t *testing.T) {
	for _, test := range []struct{ name, text, err string }{
		{"no namespace", "requests.cpu=1", `"requests.cpu=1" must be NAMESPACE:requests.RESOURCE=AMOUNT, for example team-a:requests.cpu=100m:limits.memory=128Mi, or NAMESPACE: for nothing`},
		{"an empty entry", "a:,", `"" must be NAMESPACE:requests.RESOURCE=AMOUNT`},
		{"a namespace that is no name", "Team:requests.cpu=1", `"Team" is neither the name of a namespace nor *`},
		{"a pattern of namespaces", "team-*:requests.cpu=1", `"team-*" is neither the name of a namespace nor *`},
		{"a namespace that is listed twice", "a:requests.cpu=1,*:,a:requests.memory=1", `namespace "a" is listed twice; remove one entry`},
		{"all other namespaces twice", "*:,*:", `namespace "*" is listed twice`},
		{"neither a request nor a limit", "a:cpu=1", `namespace "a": "cpu=1" must be requests.RESOURCE=AMOUNT or limits.RESOURCE=AMOUNT`},
		{"an unknown resource", "a:requests.memroy=1", `namespace "a": containers cannot request resource "memroy"; use cpu, memory, ephemeral-storage, hugepages-SIZE or PREFIX/NAME`},
		{"a resource that is no name", "a:requests.x/y/z=1", `namespace "a": "x/y/z" is not the name of a resource`},
		{"a key of quota trees", "a:requests.kube-queue/max-jobs=1", `resource "kube-queue/max-jobs" has a reserved prefix`},
		{"no amount", "a:requests.cpu", `namespace "a": requests.cpu: "" is not an amount; write a quantity such as 100m or 128Mi`},
		{"an amount that is none", "a:limits.memory=128MB", `namespace "a": limits.memory: "128MB" is not an amount`},
		{"an amount that takes forever to be read", "a:requests.cpu=1e99999999", `namespace "a": requests.cpu: "1e99999999" is not an amount`},
		{"a negative amount", "a:requests.cpu=-100m", `namespace "a": the amount of requests.cpu must be 0 or more, not -100m`},
		{"half a device", "a:requests.example.com/gpu=0.5", `namespace "a": the amount of requests.example.com/gpu must be an integer, not 0.5`},
		{"too much", "a:limits.memory=10E", `namespace "a": the amount of memory exceeds the maximum of 9223372036854775807`},
		{"a resource that is listed twice", "a:requests.cpu=1:requests.cpu=1", `namespace "a": requests.cpu is listed twice; remove one amount`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParseAdditional(test.text)
			require.ErrorSays(t, err, test.err)
		})
	}
}

func TestEachPodRequestsTheAdditionalResourcesOfItsNamespace(t *testing.T) {
	const one = `{containers: [{resources: {requests: {cpu: 1}, limits: {cpu: 2}}}]}`
	for _, test := range []struct{ name, text, spec, requests, limits string }{
		{"those of its namespace", "other:requests.cpu=9,ns:requests.cpu=100m:requests.memory=64Mi,*:requests.cpu=7", one, `{cpu: 1100m, memory: 64Mi}`, `{cpu: 2}`},
		{"those of all other namespaces", "other:requests.cpu=9,*:requests.cpu=250m", one, `{cpu: 1250m}`, `{cpu: 2}`},
		{"none, although other namespaces have some", "ns:,*:requests.cpu=250m", one, `{cpu: 1}`, `{cpu: 2}`},
		{"none if no namespace has any", "", one, `{cpu: 1}`, `{cpu: 2}`},
		{"limits", "ns:limits.cpu=1:limits.memory=64Mi", one, `{cpu: 2, memory: 64Mi}`, `{cpu: 3, memory: 64Mi}`},
		{"once, however many containers it has", "ns:requests.cpu=100m", `{containers: [{resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 1}}}]}`, `{cpu: 2100m}`, `{}`},
		{"in addition to a large init container", "ns:requests.cpu=100m", `{initContainers: [{resources: {requests: {cpu: 4}}}], containers: [{resources: {requests: {cpu: 1}}}]}`, `{cpu: 4100m}`, `{}`},
		{"in addition to overhead", "ns:requests.cpu=100m", `{runtimeClassName: sandbox, containers: [{resources: {requests: {cpu: 1}}}]}`, `{cpu: 1350m, memory: 64Mi}`, `{}`},
		{"within the resources of the pod as a whole", "ns:requests.cpu=100m:requests.memory=64Mi", `{resources: {requests: {cpu: 2}}, containers: [{resources: {requests: {cpu: 1}}}]}`, `{cpu: 2, memory: 64Mi}`, `{}`},
		{"with the type of the pod's devices", "ns:requests.example.com/gpu=1", `{nodeSelector: {model: h100}, containers: [{resources: {limits: {example.com/gpu: 2}}}]}`,
			`{example.com/gpu: 3, gpu/h100: 3}`, `{example.com/gpu: 2}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := clusterOf(t)
			c.Devices.Additional, c.Devices.Types = additional(t, test.text), typesOf(t, someTypes)
			before := additional(t, test.text)
			tryPod(t, test.spec, c, test.requests, test.limits)
			if !reflect.DeepEqual(c.Devices.Additional, before) {
				t.Error("the additional resources were changed")
			}
		})
	}
}

func TestAdditionalResourcesChangeWhatAResourceQuotaChecks(t *testing.T) {
	c := clusterOf(t)
	c.Devices.Additional = additional(t, "ns:requests.cpu=100m")
	size, err := Pod(templateOf(t, `{containers: [{name: main}]}`), "ns", c)
	require.NoError(t, err)
	if len(size.Scopes) > 0 {
		t.Errorf("a pod that requests cpu has scopes %v", size.Scopes)
	}
	if got := size.Unset[corev1.ResourceRequestsCPU]; got != "main" {
		t.Errorf("cpu is not requested by %q, want only the container of the template", got)
	}
}

func TestALimitRangeOfPodsAppliesWithAdditionalResources(t *testing.T) {
	const spec = `{containers: [{name: main, resources: {requests: {cpu: 2}, limits: {cpu: 2}}}]}`
	c := clusterOf(t, `[{type: Pod, max: {cpu: 2}}, {type: Container, min: {cpu: 1}, max: {cpu: 2}}]`)
	c.Devices.Additional = additional(t, "ns:requests.cpu=100m")
	_, err := Pod(templateOf(t, spec), "ns", c)
	const want = `LimitRange "r0" rejects the pod: the pod with its additional resources requests 2100m cpu, but the max is 2; change the requests or limits in the pod template`
	if err == nil || err.Error() != want {
		t.Errorf("error is %v", err)
	}
	c.Devices.Additional = additional(t, "other:requests.cpu=100m")
	if _, err := Pod(templateOf(t, spec), "ns", c); err != nil {
		t.Errorf("without additional resources the error is %v", err)
	}
}

func TestWhatIsDeclaredHasNoAdditionalResources(t *testing.T) {
	declared := list(t, `{cpu: 4}`)
	got, err := Declared(declared, Rules{Additional: additional(t, "*:requests.cpu=1")})
	if err != nil || !equality.Semantic.DeepEqual(got, declared) {
		t.Errorf("got %v, error %v", got, err)
	}
}
