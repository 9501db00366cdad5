package main

import (
	"path/filepath"
	"testing"

	"kube-queue.dev/kube-queue/pkg/program"
	"kube-queue.dev/kube-queue/test/require"
)

func TestTheExampleFilesHoldAllSettingsAndTheirDefaults(t *testing.T) {
	for _, p := range programs() {
		t.Run(p.Name, func(t *testing.T) {
			set, err := program.Settings(p)
			require.NoError(t, err)
			require.NoError(t, set.Read([]string{"--config", filepath.Join("../../docs/reference/config", p.Name+".yaml")}, nil))
			for _, setting := range set.All() {
				if setting.Text() != setting.Default() {
					t.Errorf("%s is %q, by default %q", setting.Field, setting.Text(), setting.Default())
				}
				if setting.Origin() == "" {
					t.Errorf("%s is not in the file", setting.Field)
				}
			}
			if p.Validate != nil && !p.Anonymous { // the hosts of pages have no default
				require.NoError(t, p.Validate())
			}
		})
	}
}
