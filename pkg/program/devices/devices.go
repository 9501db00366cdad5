// Package devices declares the settings for devices such as GPUs, so that both programs read them in the same way.
package devices

import (
	"kube-queue.dev/kube-queue/pkg/program/settings"
	"kube-queue.dev/kube-queue/pkg/requests"
)

// Settings are the settings for devices of a program.
type Settings struct {
	// Rules are the settings that were read.
	Rules requests.Rules
	// Classes and Types are the settings in the syntax of their flags.
	Classes, Types string
}

// Declare adds the settings to the set.
func (s *Settings) Declare(set *settings.Set) {
	set.Group("Devices",
		settings.Setting{Var: &s.Classes, Flag: "device-classes", Field: "devices.classes", Form: settings.Texts(), Check: s.checkClasses,
			Help: "Resource that devices of each DeviceClass count as, whether pods claim or request them: CLASS=RESOURCE, separated by commas; CLASS= for devices that are not counted." +
				" CLASS/CAPACITY=RESOURCE counts the capacity that claims request of shared devices. Jobs with devices of other classes are not admitted. Must be the same for both programs."},
		settings.Setting{Var: &s.Types, Flag: "device-types", Field: "devices.types", Form: settings.Types(), Check: s.checkTypes,
			Help: "Types of devices, charged in addition to the resource: RESOURCE:LABEL=VALUE:TYPE for pods that require a node label with a value," +
				" and RESOURCE::TYPE for all other pods, separated by commas. Must be the same for both programs."})
}

func (s *Settings) checkClasses() (err error) {
	s.Rules.Classes, err = requests.ParseClasses(s.Classes)
	return err
}

func (s *Settings) checkTypes() (err error) {
	s.Rules.Types, err = requests.ParseTypes(s.Types)
	return err
}
