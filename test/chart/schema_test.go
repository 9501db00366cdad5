package chart

import (
	"maps"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/test/require"
)

func TestInvalidValuesAreRefusedWithTheirNames(t *testing.T) {
	expectRefused(t, []refused{
		{"managed pods beside a kind whose parts are not managed", "enabledExtensions: [pod, jobset]\nannotationExtensions: []",
			[]string{"managedNamespaces.kinds", "jobs.batch", "without quota"}},
		{"managed pods beside kinds that are not managed", "enabledExtensions: [pod]\nannotationExtensions: [job, jobset]\nmanagedNamespaces: {kinds: [pod, jobset]}",
			[]string{"managedNamespaces.kinds", "jobs.batch", "without quota"}},
		{"a type of devices with a label without a value", "devices: {types: [{resource: a/b, nodeLabel: c, type: d/e}]}", []string{"/devices/types/0", "nodeLabelValue"}},
		{"a kind that nobody knows", "enabledExtensions: [tfjob, jbo]", []string{"/enabledExtensions/1", "'pytorchjob'", "'workflow'"}},
		{"a kind that nobody knows, by its annotation", "annotationExtensions: [jbo]", []string{"/annotationExtensions/0", "'pytorchjob'"}},
		{"kinds as one text", "enabledExtensions: tfjob,job", []string{"/enabledExtensions", "want array"}},
		{"a name that is misspelt", "controler: {replicas: 3}", []string{"'controler' not allowed"}},
		{"a name below that is misspelt", "controller: {replica: 3}", []string{"/controller", "'replica' not allowed"}},
		{"a number that is none", "controller: {replicas: two}", []string{"/controller/replicas", "want integer"}},
		{"a number below none", "jobExtensions: {replicas: -1}", []string{"/jobExtensions/replicas", "0"}},
		{"a quota backend that is not there", "controller: {queueGroupPlugin: etcd}", []string{"/controller/queueGroupPlugin", "'elasticquota', 'resourcequota'"}},
		{"a policy that is not there", "controller: {policy: FIFO}", []string{"/controller/policy", "'RoundRobin', 'Priority', 'Block', 'ShortestFirst'"}},
		{"a probe that asks something else", "controller: {livenessProbe: {tcpSocket: {port: 1}}}", []string{"/controller/livenessProbe", "'tcpSocket' not allowed"}},
		{"yes and no as texts", `controller: {strictPriority: "true"}`, []string{"/controller/strictPriority", "want boolean"}},
		{"neither auto nor yes or no", "holdPolicies: {enabled: always}", []string{"/holdPolicies/enabled", "'auto', true, false"}},
		{"the value of a variable that is not text", "controller: {extraEnv: [{name: A, value: 1}]}", []string{"/controller/extraEnv/0/value", "want string"}},
		{"a type of devices without a resource", "devices: {types: [{type: gpu/h100}]}", []string{"/devices/types/0", "missing property 'resource'"}},
		{"a type of devices with an unknown field", "devices: {types: [{resource: a/b, type: c/d, label: e}]}", []string{"/devices/types/0", "'label' not allowed"}},
		{"a flag without dashes", "controller: {extraArgs: [oversell-rate=2]}", []string{"/controller/extraArgs/0", "'^-'"}},
		{"a digest that is none", "controller: {image: {digest: abc}}", []string{"/controller/image/digest", "sha256"}},
		{"an annotation that is not text", "controller: {podAnnotations: {a: true}}", []string{"/controller/podAnnotations/a", "want string"}},
		{"a port that is none", "networkPolicy: {apiServerPorts: [0]}", []string{"/networkPolicy/apiServerPorts/0", "1"}},
		{"rights for nobody known", "rbac: {grant: some}", []string{"/rbac/grant", "'kinds', 'enabled', 'all'"}},
		{"a label of all that the chart sets", "commonLabels: {app.kubernetes.io/part-of: mine}", []string{"/commonLabels/app.kubernetes.io~1part-of"}},
		{"a label of pods that the chart sets", "controller: {podLabels: {app.kubernetes.io/name: mine}}", []string{"/controller/podLabels/app.kubernetes.io~1name"}},
		{"a label by which a role joins another", `commonLabels: {rbac.authorization.k8s.io/aggregate-to-edit: "true"}`,
			[]string{"/commonLabels/rbac.authorization.k8s.io~1aggregate-to-edit"}},
		{"an operator of an unknown kind", `managedNamespaces: {operators: [{namespace: a, serviceAccount: b, kinds: [ray]}]}`, []string{"/managedNamespaces/operators/0/kinds/0", "'rayjob'"}},
		{"an operator of no kind", `managedNamespaces: {operators: [{namespace: a, serviceAccount: b, kinds: []}]}`, []string{"/managedNamespaces/operators/0/kinds", "minItems"}},
		{"an operator without a namespace", `managedNamespaces: {operators: [{serviceAccount: b, kinds: [rayjob]}]}`, []string{"missing property 'namespace'"}},
		{"operators by their usernames", `managedNamespaces: {operators: {rayjob: ["system:serviceaccount:a:b"]}}`, []string{"managedNamespaces.operators is a list", "kinds: [rayjob]"}},
		{"a fence that is unknown", "managedNamespaces: {fence: refuse}", []string{"fence"}},
		{"a managed kind that is not queued", "annotationExtensions: [tfjob]\nmanagedNamespaces: {kinds: [jobset]}",
			[]string{"managedNamespaces.kinds", "jobset", "enabledExtensions", "wait forever"}},
	})
}

// refused are invalid values and their error.
type refused struct {
	name   string
	values string
	says   []string
}

func expectRefused(t *testing.T, tests []refused) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := template(t, chart, "--set-json", inline(t, test.values))
			require.ErrorSays(t, err, test.says...)
		})
	}
}

func TestEachValueHasASchema(t *testing.T) {
	var schema map[string]any
	require.NoError(t, yaml.UnmarshalStrict([]byte(read(t, chart+"/values.schema.json")), &schema))
	var compare func(path string, schema, values map[string]any)
	compare = func(path string, schema, values map[string]any) {
		properties, _ := schema["properties"].(map[string]any)
		if schema["additionalProperties"] != false {
			return // a map with the user's own keys
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			below, known := properties[name].(map[string]any)
			if !known {
				t.Errorf("values.schema.json does not know %s%s", path, name)
				continue
			}
			if values, isMap := values[name].(map[string]any); isMap {
				compare(path+name+".", below, values)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if _, there := values[name]; !there && name != "global" {
				t.Errorf("values.yaml has no %s%s, which the schema knows", path, name)
			}
		}
	}
	compare("", schema, defaultValues(t))
}

// inline converts YAML to an argument of --set-json.
func inline(t *testing.T, values string) string {
	t.Helper()
	json, err := yaml.YAMLToJSON([]byte(values))
	require.NoError(t, err)
	return string(json)
}
