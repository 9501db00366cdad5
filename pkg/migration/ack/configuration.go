package ack

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/pkg/migration"
)

// isConfiguration reports whether an object is the configuration file of the controller.
func isConfiguration(object *unstructured.Unstructured) bool {
	kind := object.GetKind()
	return kind == "KubeQueueConfiguration" || kind == "KoordQueueConfiguration"
}

// readConfiguration converts a configuration of the controller, alone or in a ConfigMap. It skips ConfigMaps without
// one.
func (c *converter) readConfiguration(d migration.Document) {
	if isConfiguration(d.Object) {
		c.convertConfiguration(d, d.Object.Object)
		return
	}
	data, _, err := unstructured.NestedStringMap(d.Object.Object, "data")
	if err != nil {
		return // not the controller's ConfigMap
	}
	for _, file := range slices.Sorted(maps.Keys(data)) {
		if !strings.Contains(data[file], "QueueConfiguration") {
			continue
		}
		inner, err := migration.Read(d.Source+": "+file, strings.NewReader(data[file]))
		if err != nil {
			c.faults.Add(d, "%v", err)
			continue
		}
		for _, document := range inner {
			if isConfiguration(document.Object) {
				c.convertConfiguration(d, document.Object.Object)
			}
		}
	}
}

func (c *converter) convertConfiguration(d migration.Document, fields map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		switch key {
		case "apiVersion", "kind", "metadata":
		case "plugins":
			plugins, _ := fields[key].([]any)
			for _, element := range plugins {
				plugin, _ := element.(map[string]any)
				switch name, _ := plugin["name"].(string); strings.ToLower(name) {
				case "priority":
				case "elasticquota", "elasticquotav2", "resourcequota":
					backend(&settingContext{c: c, document: d, field: "plugins", value: name})
				default:
					c.result.Find(d.Name(), "plugins: "+name, "there are no plugins of this name", "nothing")
				}
			}
		case "defaultReclaimProtectTime":
			c.result.Find(d.Name(), key, "the time is a setting of each Queue", "set spec.preemption.minRunTime of the Queues")
		default:
			c.result.Find(d.Name(), key, "the setting has no equivalent", "nothing")
		}
	}
}
