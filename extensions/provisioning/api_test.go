package provisioning

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	autoscaling "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"
	older "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1beta1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/require"
)

// Our type is the autoscaler's own, without unused fields.
func TestARequestIsAProvisioningRequestOfTheAutoscaler(t *testing.T) {
	in := inputOf(t, podSet{"launcher", 1, cpuPod}, podSet{"worker", 4, gpuPod})
	in.Config.Parameters = map[string]string{"a": "b"}
	ours := planOf(t, in).Request
	ours.Status.Conditions = []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionTrue, Reason: "r", Message: "m"}}
	data, err := json.Marshal(ours)
	require.NoError(t, err)
	var old older.ProvisioningRequest
	if faults, err := kjson.UnmarshalStrict(data, &old); err != nil || len(faults) > 0 {
		t.Fatalf("an autoscaler of the older version does not know the request: %v %v", faults, err)
	}
	var theirs autoscaling.ProvisioningRequest
	if faults, err := kjson.UnmarshalStrict(data, &theirs); err != nil || len(faults) > 0 {
		t.Fatalf("the autoscaler does not know the request: %v %v", faults, err)
	}
	back, err := json.Marshal(theirs)
	require.NoError(t, err)
	var read Request
	if err := json.Unmarshal(back, &read); err != nil || !reflect.DeepEqual(&read, ours) {
		t.Errorf("the request comes back as %s (%v)", back, err)
	}
}

func TestTheWordsOfTheAutoscalerAreItsOwn(t *testing.T) {
	for ours, theirs := range map[string]string{
		conditionAccepted: autoscaling.Accepted, conditionReady: autoscaling.Provisioned, conditionFailed: autoscaling.Failed,
		conditionExpired: autoscaling.BookingExpired, conditionRevoked: autoscaling.CapacityRevoked,
		wellknown.ConsumeRequestAnnotation:  autoscaling.ProvisioningRequestPodAnnotationKey,
		wellknown.RequestClassAnnotation:    autoscaling.ProvisioningClassPodAnnotationKey,
		RequestKind.GroupVersion().String(): autoscaling.SchemeGroupVersion.String(),
	} {
		if ours != theirs {
			t.Errorf("%s is %s", ours, theirs)
		}
	}
}

// The limits that are enforced here are those of the CRD.
func TestTheLimitsAreThoseOfTheCRD(t *testing.T) {
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/autoscaler/cluster-autoscaler/apis").Output()
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "config/crd/autoscaling.x-k8s.io_provisioningrequests.yaml"))
	require.NoError(t, err)
	type schema struct {
		Properties           map[string]schema
		MaxItems             *int64
		MaxProperties        *int64
		MaxLength            *int64
		AdditionalProperties *schema
	}
	var crd struct {
		Spec struct {
			Names    struct{ Plural, Kind string }
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema schema }
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(data, &crd))
	if crd.Spec.Names.Plural != RequestResource.Resource || crd.Spec.Names.Kind != RequestKind.Kind {
		t.Errorf("the names are %v", crd.Spec.Names)
	}
	var found []string
	for _, version := range crd.Spec.Versions {
		if !slices.Contains(RequestVersions(), version.Name) {
			continue
		}
		found = append(found, version.Name)
		spec := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties
		got := []int64{*spec["podSets"].MaxItems, *spec["parameters"].MaxProperties, *spec["parameters"].AdditionalProperties.MaxLength}
		if want := []int64{mostPodSets, mostParameters, longestParameter}; !slices.Equal(got, want) {
			t.Errorf("the limits are %v, not %v", got, want)
		}
	}
	if len(found) != len(RequestVersions()) {
		t.Errorf("of the versions %q, the CRD has %q", RequestVersions(), found)
	}
}
