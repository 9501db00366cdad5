package settings_test

import (
	"testing"

	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"

	"kube-queue.dev/kube-queue/pkg/program/settings"
	"kube-queue.dev/kube-queue/test/require"
)

func TestOneOfTwoFeatureGatesMayBeSetElsewhere(t *testing.T) {
	f, err := settings.NewFeatures(map[featuregate.Feature]featuregate.FeatureSpec{
		"A": {Default: true, PreRelease: featuregate.Beta}, "B": {Default: true, PreRelease: featuregate.Beta}})
	require.NoError(t, err)
	for _, text := range []string{"A=false,AllBeta=false", "AllBeta=true,LoggingAlphaOptions=true"} { // as by a file, then by a flag
		require.NoError(t, f.Set(text))
	}
	require.NoError(t, f.Apply())
	if f.Gate().Enabled("A") || !f.Gate().Enabled("B") || !f.Gate().Enabled(logsapi.LoggingAlphaOptions) {
		t.Errorf("set is %s; A %t, B %t", f, f.Gate().Enabled("A"), f.Gate().Enabled("B"))
	}
}
