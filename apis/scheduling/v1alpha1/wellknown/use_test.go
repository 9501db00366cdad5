package wellknown_test

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"strings"
)

const (
	module    = "kube-queue.dev/kube-queue/"
	apiFolder = module + "apis/scheduling/v1alpha1"
	words     = apiFolder + "/wellknown"
	metaV1    = "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiMeta   = "k8s.io/apimachinery/pkg/api/meta"
)

// definedIn is the package that defines all constants of a type.
var definedIn = map[string]string{
	words + ".Reason":             words,
	words + ".EventReason":        words,
	apiFolder + ".QueueUnitPhase": apiFolder,
}

// key finds a key of an annotation, a label or a resource, also within a sentence. The
// group's version is none.
var key = regexp.MustCompile(`(^|[^a-z0-9./-])((provreq\.)?(kube-queue|kueue\.x-k8s\.io)/|scheduling\.x-k8s\.io/([^v]|$))`)

// checker reports words that are used and not defined by the API.
type checker struct {
	files *token.FileSet
	info  *types.Info
	pkg   *types.Package
	found []string
}

func (c *checker) check(file *ast.File) {
	ast.Inspect(file, c.see)
}

func (c *checker) report(at ast.Node, what string) {
	c.found = append(c.found, fmt.Sprintf("%s: %s", c.files.Position(at.Pos()), what))
}

// see looks at a node, and reports whether what is below it is to be looked at too.
func (c *checker) see(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.Field: // its tag is no word
		if n.Type != nil {
			ast.Inspect(n.Type, c.see)
		}
		return false
	case *ast.CompositeLit:
		c.seeLiteral(n)
	case *ast.BinaryExpr:
		c.pair(n.X, n.Y)
		c.pair(n.Y, n.X)
	case *ast.AssignStmt:
		for i := 0; i < len(n.Lhs) && len(n.Lhs) == len(n.Rhs); i++ {
			c.pair(n.Lhs[i], n.Rhs[i])
		}
	case *ast.SwitchStmt:
		c.seeSwitch(n)
	case *ast.CallExpr:
		c.seeCall(n)
	case *ast.BasicLit:
		c.seeKey(n)
	}
	if e, is := n.(ast.Expr); is {
		return c.seeTyped(e)
	}
	return true
}

// seeTyped: a constant of one of the API's types must be one that the API defines.
func (c *checker) seeTyped(e ast.Expr) bool {
	value, is := c.info.Types[e]
	if !is || value.Value == nil {
		return true
	}
	home, is := definedIn[value.Type.String()]
	if !is || home == c.pkg.Path() || isEmpty(value.Value) {
		return true
	}
	if !c.defined(e) {
		c.report(e, fmt.Sprintf("%s is a %s that the API does not define", value.Value, value.Type))
	}
	return false
}

// word: a constant that is where a reason or a condition type does must be one
// that the API defines, or the API of another project.
func (c *checker) word(e ast.Expr) {
	value, is := c.info.Types[e]
	if !is || value.Value == nil || value.Value.Kind() != constant.String || isEmpty(value.Value) || c.defined(e) {
		return
	}
	if by := c.constant(e); by != nil && ofOthers(by.Pkg().Path()) {
		return
	}
	if _, typed := definedIn[value.Type.String()]; !typed { // else seeTyped reports it
		c.report(e, value.Value.String()+" is a reason or condition type that the API does not define")
	}
}

// ofOthers: constants of the package may be words of another project. Adapters name
// those of operators whose own constants they do not import.
func ofOthers(path string) bool {
	const adapters, framework = module + "extensions/", module + "extensions/framework"
	return !strings.HasPrefix(path, module) || strings.HasPrefix(path, adapters) && !strings.HasPrefix(path, framework)
}

func (c *checker) defined(e ast.Expr) bool {
	by := c.constant(e)
	return by != nil && (by.Pkg().Path() == words || by.Pkg().Path() == apiFolder)
}

// constant that the expression names, by itself or as the operand of a conversion; nil
// for any other expression.
func (c *checker) constant(e ast.Expr) *types.Const {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		named, _ := c.info.Uses[e].(*types.Const)
		return named
	case *ast.SelectorExpr:
		named, _ := c.info.Uses[e.Sel].(*types.Const)
		return named
	case *ast.CallExpr:
		if c.info.Types[e.Fun].IsType() && len(e.Args) == 1 {
			return c.constant(e.Args[0])
		}
	}
	return nil
}

func isEmpty(v constant.Value) bool {
	return v.Kind() == constant.String && constant.StringVal(v) == ""
}

// seeLiteral looks at the fields of conditions and of patches.
func (c *checker) seeLiteral(literal *ast.CompositeLit) {
	of := c.info.Types[literal].Type
	for _, element := range literal.Elts {
		pair, is := element.(*ast.KeyValueExpr)
		if !is {
			continue
		}
		name := ""
		switch k := pair.Key.(type) {
		case *ast.Ident:
			name = k.Name
		case *ast.BasicLit:
			name = strings.Trim(k.Value, `"`)
		}
		switch {
		case of.String() == metaV1+".Condition" && (name == "Type" || name == "Reason"),
			of.String() == "map[string]any" && (name == "reason" || name == "phase"):
			c.word(pair.Value)
		}
	}
}

// pair: what a field of a condition is compared with, or set to, is a word.
func (c *checker) pair(field, other ast.Expr) {
	if c.ofCondition(field) {
		c.word(other)
	}
}

func (c *checker) ofCondition(e ast.Expr) bool {
	selector, is := ast.Unparen(e).(*ast.SelectorExpr)
	if !is {
		return false
	}
	selected := c.info.Selections[selector]
	if selected == nil || selector.Sel.Name != "Type" && selector.Sel.Name != "Reason" {
		return false
	}
	return strings.TrimPrefix(selected.Recv().String(), "*") == metaV1+".Condition"
}

func (c *checker) seeSwitch(s *ast.SwitchStmt) {
	if s.Tag == nil || !c.ofCondition(s.Tag) {
		return
	}
	for _, clause := range s.Body.List {
		for _, e := range clause.(*ast.CaseClause).List {
			c.word(e)
		}
	}
}

// seeCall: the functions on conditions take a condition's type.
func (c *checker) seeCall(call *ast.CallExpr) {
	selector, is := call.Fun.(*ast.SelectorExpr)
	if !is || len(call.Args) < 2 || !strings.Contains(selector.Sel.Name, "StatusCondition") {
		return
	}
	if called := c.info.Uses[selector.Sel]; called != nil && called.Pkg() != nil && called.Pkg().Path() == apiMeta {
		c.word(call.Args[1])
	}
}

func (c *checker) seeKey(literal *ast.BasicLit) {
	if literal.Kind == token.STRING && c.pkg.Path() != words && key.MatchString(strings.Trim(literal.Value, "\"`")) {
		c.report(literal, literal.Value+" names a key: use its constant")
	}
}
