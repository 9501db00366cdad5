package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Policies lists the policies of a queue.
var Policies = []string{"RoundRobin", "Block", "Priority"}

// maxUnits is the maximum number of units of a file, so that a typo does not fill the disk.
const maxUnits = 2_000_000

// className is part of the names of units.
var className = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$`)

// Amounts are quantities of resources, such as cpu: 500m.
type Amounts map[string]string

// UnmarshalJSON accepts plain numbers too.
func (a *Amounts) UnmarshalJSON(data []byte) error {
	var raw map[string]any
	if err := json.Unmarshal(data, &raw); err != nil {
		return fmt.Errorf("amounts must map resources to quantities, for example {cpu: 2}: %w", err)
	}
	*a = Amounts{}
	for name, value := range raw {
		(*a)[name] = strings.TrimSpace(fmt.Sprint(value))
	}
	return nil
}

func (a Amounts) check(field string) error {
	for name, text := range a {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return fmt.Errorf("%s.%s: %q is not a quantity: %w", field, name, text, err)
		}
		if quantity.Sign() < 0 {
			return fmt.Errorf("%s.%s: %s must not be negative", field, name, text)
		}
	}
	return nil
}

func (s *Scenario) check() error {
	if s.Kind != Stream && s.Kind != Backlog {
		return fmt.Errorf("kind: unknown kind %q; known kinds: %s, %s", s.Kind, Stream, Backlog)
	}
	if err := CheckPolicy(s.Policy); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	for field, group := range map[string]Group{"parents": s.Parents, "leaves": s.Leaves} {
		if group.Count < 1 {
			return fmt.Errorf("%s.count: must be at least 1, not %d", field, group.Count)
		}
		if err := errors.Join(group.Min.check(field+".min"), group.Max.check(field+".max")); err != nil {
			return err
		}
	}
	if len(s.Classes) == 0 {
		return errors.New("classes: at least one is needed")
	}
	seen := map[string]bool{}
	for i := range s.Classes {
		class := &s.Classes[i]
		field := fmt.Sprintf("classes[%d]", i)
		if seen[class.Name] {
			return fmt.Errorf("%s.name: duplicate name %s", field, class.Name)
		}
		seen[class.Name] = true
		if err := class.check(field, s.Kind); err != nil {
			return err
		}
	}
	if units := s.Units(); units > maxUnits {
		return fmt.Errorf("the scenario has %d units; the maximum is %d", units, maxUnits)
	}
	return s.checkBacklog()
}

// CheckPolicy returns an error for an unknown policy.
func CheckPolicy(policy string) error {
	if !slices.Contains(Policies, policy) {
		return fmt.Errorf("unknown policy %q; known policies: %s", policy, strings.Join(Policies, ", "))
	}
	return nil
}

func (c *Class) check(field string, kind Kind) error {
	if c.Shapes == 0 {
		c.Shapes = 1
	}
	if err := errors.Join(c.RunTime.check(field+".runTime"), c.Every.check(field+".every")); err != nil {
		return err
	}
	switch {
	case !className.MatchString(c.Name):
		return fmt.Errorf("%s.name: %q must be lower case letters, digits and -, at most 32", field, c.Name)
	case c.Count < 1 || c.Count > maxUnits:
		return fmt.Errorf("%s.count: %d must be between 1 and %d", field, c.Count, maxUnits)
	case c.Shapes < 1:
		return fmt.Errorf("%s.shapes: %d must be positive", field, c.Shapes)
	case len(c.Requests) == 0:
		return fmt.Errorf("%s.requests: is required; set the requests of a unit, for example {cpu: 1}", field)
	case kind == Stream && c.RunTime.Duration <= 0:
		return fmt.Errorf("%s.runTime: is required; set the run time of a unit, for example 200ms", field)
	case kind == Backlog && (c.RunTime.Duration != 0 || c.Every.Duration != 0):
		return fmt.Errorf("%s: runTime and every have no effect in kind %s, whose units are created at once and never end", field, Backlog)
	case c.Every.Duration < 0:
		return fmt.Errorf("%s.every: %v must not be negative", field, c.Every.Duration)
	}
	return c.Requests.check(field + ".requests")
}

func (s *Scenario) checkBacklog() error {
	plan := s.Backlog
	if s.Kind == Stream {
		if plan != (BacklogPlan{}) {
			return fmt.Errorf("backlog: has no effect in kind %s", Stream)
		}
		return nil
	}
	if err := errors.Join(plan.Settle.check("backlog.settle"), plan.Rest.check("backlog.rest"), plan.Idle.check("backlog.idle")); err != nil {
		return err
	}
	switch {
	case len(s.Classes) != 1:
		return errors.New("classes: kind Backlog requires exactly one, because the order of its units decides which of them have room")
	case plan.Settle.Duration <= 0 || plan.Idle.Duration <= 0:
		return errors.New("backlog.settle, backlog.idle: both must be positive, for example 5s and 20s")
	case plan.Room < 1 || plan.More < 1:
		return errors.New("backlog.room, backlog.more: both must be positive")
	case plan.Room+plan.More > s.Classes[0].Count:
		return fmt.Errorf("backlog.room, backlog.more: %d and %d exceed the %d units of a leaf", plan.Room, plan.More, s.Classes[0].Count)
	case len(s.Parents.Max)+len(s.Leaves.Max)+len(s.Leaves.Min) > 0:
		return errors.New("parents.max, leaves.max, leaves.min: remove them; the limits of a backlog are computed from its room")
	}
	return nil
}
