package options

import (
	"fmt"
	"strconv"
	"strings"

	"kube-queue.dev/kube-queue/pkg/queue"
)

// Variables that older kube-queue releases read.
const (
	envStrictPriority    = "StrictPriority"
	envStrictConsistency = "StrictConsistency"
)

func (o *Options) checkPolicy() error {
	o.Policy = queue.PolicyNamed(o.policyName)
	if o.Policy == nil {
		return fmt.Errorf("unknown policy %q; known policies: %s", o.policyName, strings.Join(queue.PolicyNames(), ", "))
	}
	return nil
}

// policyOf returns the policy that the two historical variables select. Both together select Block.
func policyOf(lookup func(string) string) (string, error) {
	strictPriority, err := boolean(lookup, envStrictPriority)
	if err != nil {
		return "", err
	}
	strictConsistency, err := boolean(lookup, envStrictConsistency)
	if err != nil {
		return "", err
	}
	switch {
	case strictPriority:
		return queue.Block.Name, nil
	case strictConsistency:
		return queue.Priority.Name, nil
	default:
		return queue.RoundRobin.Name, nil
	}
}

func boolean(lookup func(string) string, name string) (bool, error) {
	value := lookup(name)
	if value == "" {
		return false, nil
	}
	set, err := strconv.ParseBool(strings.ToLower(value))
	if err != nil {
		return false, fmt.Errorf("environment variable %s: must be true or false, not %q", name, value)
	}
	return set, nil
}
