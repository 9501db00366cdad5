package trace

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

const maxNamespace = 63

// namespaces returns the namespaces of all tenants, and the tenants that were renamed.
func namespaces(rows []row) (map[string]string, []Renamed) {
	all, taken := map[string]string{}, map[string]bool{}
	for _, r := range rows {
		all[r.tenant] = ""
	}
	// Valid names are never changed, even if another tenant would be renamed to them.
	tenants := slices.Sorted(maps.Keys(all))
	for _, tenant := range tenants {
		if len(content.IsDNS1123Label(tenant)) == 0 {
			all[tenant], taken[tenant] = tenant, true
		}
	}
	var renamed []Renamed
	for _, tenant := range tenants {
		if all[tenant] != "" {
			continue
		}
		base := namespace(tenant)
		name := base
		for i := 2; taken[name]; i++ {
			suffix := fmt.Sprintf("-%d", i)
			name = strings.TrimRight(base[:min(len(base), maxNamespace-len(suffix))], "-") + suffix
		}
		all[tenant], taken[name] = name, true
		renamed = append(renamed, Renamed{From: tenant, To: name})
	}
	return all, renamed
}

// namespace returns a valid name of a namespace that resembles the name of the tenant.
func namespace(tenant string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(tenant) {
		if c < '0' || c > '9' && c < 'a' || c > 'z' {
			c = '-'
		}
		if b.Len() < maxNamespace {
			b.WriteRune(c)
		}
	}
	if name := strings.Trim(b.String(), "-"); name != "" {
		return name
	}
	return "tenant"
}
