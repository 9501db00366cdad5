package lenient

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/require"
)

var unitKind = Kind{
	GroupVersionKind: schedulingv1alpha1.SchemeGroupVersion.WithKind("QueueUnit"), Resource: "queueunits",
	New: func() Object { return &schedulingv1alpha1.QueueUnit{} },
}

// unitText returns a unit that can be read except for the given spec and status.
func unitText(spec, status string) string {
	return `{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"QueueUnit",
		"metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"7","generation":3,"labels":{"commit":"12e4567"}},
		"spec":{"consumerRef":{"apiVersion":"v1","kind":"Thing","name":"t"},"priority":5` + spec + `},"status":{"phase":"Dequeued"` + status + `}}`
}

func TestWhatCannotBeReadIsLeftOutAndReported(t *testing.T) {
	for name, test := range map[string]struct {
		spec, status string
		// says are parts of the error; empty if everything can be read.
		says []string
		// kept is the remaining part of spec.resource.
		kept string
	}{
		"all is well":                    {`,"resource":{"cpu":"1e1","memory":5}`, "", nil, `{"cpu":"10","memory":"5"}`},
		"a broken exponent":              {`,"resource":{"cpu":"1e1.5","memory":"1Gi"}`, "", []string{"spec.resource.cpu: ", "1e1.5"}, `{"memory":"1Gi"}`},
		"an exponent that takes forever": {`,"resource":{"cpu":"1e-1000000000","memory":"1Gi"}`, "", []string{"spec.resource.cpu: ", "1e-1000000000"}, `{"memory":"1Gi"}`},
		"one with room around it":        {`,"resource":{"cpu":" 1E+2000000000 "}`, "", []string{"spec.resource.cpu: "}, ``},
		"one with other space around it": {`,"resource":{"cpu":" 1E-2000000000　"}`, "", []string{"spec.resource.cpu: "}, ``},
		"a name with a dot":              {`,"resource":{"nvidia.com/gpu":"x"}`, "", []string{"spec.resource[nvidia.com/gpu]: "}, ``},
		"one of many pod sets":           {`,"podSets":[{"name":"x","count":1},{"name":"y","count":1,"requests":{"cpu":"1e1.5"}}],"resource":{"cpu":2}`, "", []string{"spec.podSets[1].requests.cpu: "}, `{"cpu":"2"}`},
		"a time without microseconds":    {`,"submissionTime":"2026-01-01T00:00:00Z","resource":{"cpu":2}`, "", []string{"spec.submissionTime: "}, `{"cpu":"2"}`},
		"a time in the status":           {`,"resource":{"cpu":2}`, `,"conditions":[{"type":"Evicted","status":"True","reason":"Stopped","message":"","lastTransitionTime":"2026-01-01t00:00:00z"}]`, []string{"status.conditions[0].lastTransitionTime: "}, `{"cpu":"2"}`},
		"something altogether different": {`,"resource":[1],"active":"yes","podSets":7`, "", []string{"spec.resource: ", "spec.active: ", "spec.podSets: "}, ``},
		"more than anybody reads":        {`,"resource":{"a":"x","b":"x","c":"x","d":"x","e":"x","f":"x","g":"x"}`, "", []string{"spec.resource.e", "and 2 more"}, ``},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			object, err := unitKind.Decode([]byte(unitText(test.spec, test.status)))
			require.NoError(t, err)
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
			unit, readable := object.(*schedulingv1alpha1.QueueUnit)
			if readable != (test.says == nil) {
				t.Fatalf("it is read as %T: %+v", object, object)
			}
			if bad, is := object.(*Unreadable); is {
				require.Says(t, "the error", bad.Err.Error(), test.says...)
				unit = bad.Partial.(*schedulingv1alpha1.QueueUnit)
			}
			if object.GetUID() != "u" || object.GetGeneration() != 3 || object.GetLabels()["commit"] != "12e4567" {
				t.Errorf("its metadata is %+v", object)
			}
			if unit.Spec.Priority != 5 || unit.Status.Phase != "Dequeued" || unit.Labels["commit"] != "12e4567" {
				t.Errorf("left of it is %+v", unit)
			}
			if test.status != "" && (len(unit.Status.Conditions) != 1 || unit.Status.Conditions[0].Reason != "Stopped") {
				t.Errorf("left of its conditions is %+v", unit.Status.Conditions)
			}
			kept, _ := json.Marshal(unit.Spec.Resource)
			if got := strings.NewReplacer("null", "", "{}", "").Replace(string(kept)); got != test.kept {
				t.Errorf("left of its request is %s, want %s", got, test.kept)
			}
		})
	}
}

func TestATextWithoutMetadataIsAnError(t *testing.T) {
	for _, text := range []string{``, `7`, `{"metadata":7}`, `{"metadata":{"name":7}}`} {
		if object, err := unitKind.Decode([]byte(text)); err == nil {
			t.Errorf("%s is read as %+v", text, object)
		}
	}
}

func TestOneBadObjectDoesNotSpoilAList(t *testing.T) {
	good := unitText(`,"resource":{"cpu":1}`, "")
	for name, bad := range map[string]string{
		"broken": unitText(`,"resource":{"cpu":"1e1.5"}`, ""),
		"slow":   unitText(`,"resource":{"cpu":"1e-1000000000"}`, ""),
	} {
		var items []Object
		meta, err := readList(fmt.Sprintf(`{"metadata":{"resourceVersion":"9","continue":"more"},"items":[%s,%s,%s]}`, good, bad, good), &items)
		if err != nil || len(items) != 3 || meta.ResourceVersion != "9" || meta.Continue != "more" {
			t.Fatalf("%s: %v, %+v, %+v", name, err, meta, items)
		}
		for i, wantBad := range []bool{false, true, false} {
			if _, isBad := items[i].(*Unreadable); isBad != wantBad {
				t.Errorf("%s: item %d is a %T", name, i, items[i])
			}
		}
	}
}

func readList(text string, items *[]Object) (metav1.ListMeta, error) {
	return unitKind.readList(strings.NewReader(text), func(object Object) error {
		*items = append(*items, object)
		return nil
	})
}

func TestAListIsReadInAnyOrder(t *testing.T) {
	good := unitText(`,"resource":{"cpu":1}`, "")
	for text, want := range map[string]int{
		`{"apiVersion":"a/v1","items":[` + good + `,` + good + `],"kind":"QueueUnitList","metadata":{"resourceVersion":"9"}}`:                         2,
		` { "kind" : "Queue\"UnitList" , "metadata" : {"resourceVersion":"9"} , "items" : [ ` + good + ` ] } ` + "\n":                                 1,
		`{"items":[],"metadata":{"resourceVersion":"9"}}`:                                                                                             0,
		`{"items":null,"metadata":{"resourceVersion":"9"}}`:                                                                                           0,
		`{"new":{"items":[7]},"more":[{"a":"]"},[]],"n":-1.5e3,"yes":true,"metadata":{"resourceVersion":"9"},"no":null,"items":[` + good + `],"z":0}`: 1,
		`{"metadata":{"resourceVersion":"9"}}`:                                                                                                        0,
	} {
		var items []Object
		if meta, err := readList(text, &items); err != nil || len(items) != want || meta.ResourceVersion != "9" {
			t.Errorf("%s: %d items of version %q, error %v", text, len(items), meta.ResourceVersion, err)
		}
	}
}

// Otherwise an informer would treat the missing objects as deleted.
func TestAListThatIsCutOffIsAnError(t *testing.T) {
	whole := `{"kind":"QueueUnitList","n":1,"items":[` + unitText("", "") + `,` + unitText("", "") + `],"metadata":{"resourceVersion":"9"}}`
	var items []Object
	_, err := readList(whole, &items)
	require.NoError(t, err)
	for n := range len(whole) {
		if _, err := readList(whole[:n], &items); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("the first %d bytes of %s: error %v", n, whole, err)
		}
	}
	for _, text := range []string{
		`[]`, `"items"`, `{"items":{}}`, `{"items":[null]}`, `{"items":[1]}`, `{"items":[{}}`, `{"items":[{"metadata":{}} {}]}`, `{"items":["x"]}`,
		`{"items":[{"metadata":7}]}`, `{"metadata":[]}`, `{"metadata":{"resourceVersion":9}}`, `{items:[]}`, `{"items"[]}`, `{"kind":"x","kind"}`,
	} {
		if _, err := readList(text, &items); err == nil {
			t.Errorf("%s is no error", text)
		}
	}
}

// What a typed client can read is read with the same result.
func TestReadAsATypedClientDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quantity := rapid.SampledFrom([]string{`"1"`, `1`, `"1e3"`, `"-5Mi"`, `".5"`, `"1E"`, `"12e45"`, `null`, `""`, `"1e1.5"`, `"x"`, `{}`, `1.5`})
		text := []byte(unitText(fmt.Sprintf(`,"resource":{"a":%s,"b":%s},"ACTIVE":false`, quantity.Draw(t, "a"), quantity.Draw(t, "b")), ""))
		typed := &schedulingv1alpha1.QueueUnit{}
		err := unmarshal(text, typed)
		object, decodeErr := unitKind.Decode(text)
		require.NoError(t, decodeErr)
		if _, isBad := object.(*Unreadable); isBad != (err != nil) {
			t.Fatalf("typed: %v, but %+v", err, object)
		}
		if err == nil {
			want, _ := json.Marshal(typed)
			if got, _ := json.Marshal(object); string(got) != string(want) {
				t.Fatalf("%s, want %s", got, want)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(unitText(`,"resource":{"cpu":"1e1.5"}`, ""))
	f.Add(unitText(`,"podSets":[null,{"requests":[{}]}]`, `,"conditions":[null,7]`))
	f.Fuzz(func(t *testing.T, text string) {
		object, err := unitKind.Decode([]byte(text))
		if bad, is := object.(*Unreadable); err == nil && is && (bad.Partial == nil || bad.Err == nil) {
			t.Errorf("nothing is left, or reported, of %s", text)
		}
	})
}

func TestCopies(t *testing.T) {
	object, err := unitKind.Decode([]byte(unitText(`,"resource":{"cpu":"1e1.5"}`, "")))
	require.NoError(t, err)
	twin := object.DeepCopyObject().(*Unreadable)
	twin.Labels["commit"], twin.Partial.GetLabels()["commit"] = "other", "other"
	if object.GetLabels()["commit"] != "12e4567" || object.(*Unreadable).Partial.GetLabels()["commit"] != "12e4567" {
		t.Error("the copy is not deep")
	}
}
