package clustertest

import (
	"slices"
	"testing"

	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/test/require"
)

// Native kinds are built into the API server and need no operator.
func TestEachKindHasOneOperator(t *testing.T) {
	operators, err := Operators(t.Context())
	require.NoError(t, err)
	for _, adapter := range registry.All() {
		kind := adapter.Kind()
		want := 1
		if kind.Native {
			want = 0
		}
		var found []string
		for _, o := range operators {
			if o.Runs(kind) {
				found = append(found, o.Name)
			}
		}
		if len(found) != want {
			t.Errorf("%s is run by %v, want %d operators of test/localcluster", kind.Name, found, want)
		}
	}
}

func TestOperatorWithASharedDefinitionReplacesAnother(t *testing.T) {
	operators, err := Operators(t.Context())
	require.NoError(t, err)
	together, instead := SideBySide(operators)
	if !slices.Equal(Names(instead), []string{"mpi-operator"}) || len(together)+len(instead) != len(operators) {
		t.Errorf("together: %v, instead of another: %v", Names(together), Names(instead))
	}
}
