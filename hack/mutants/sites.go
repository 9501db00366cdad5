package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"math/rand/v2"
	"slices"
)

// site is a place in a file of a package, and one fault: the bytes from start to end become text.
type site struct {
	pkg, file    string
	line, column int
	operator     string
	start, end   int
	text         string
}

var swaps = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD, token.BREAK: token.CONTINUE, token.CONTINUE: token.BREAK,
}

// sitesOf returns the sites of a file in the order of its text; a generated file has none.
func sitesOf(pkg, file string, source []byte) ([]site, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(parsed) {
		return nil, err
	}
	var sites []site
	add := func(operator string, from, to token.Pos, text string) {
		at := files.Position(from)
		sites = append(sites, site{pkg, file, at.Line, at.Column, operator, at.Offset, files.Position(to).Offset, text})
	}
	swap := func(from token.Token, at token.Pos) {
		if to, ok := swaps[from]; ok {
			add(from.String()+" to "+to.String(), at, at+token.Pos(len(from.String())), to.String())
		}
	}
	negate := func(operator string, e ast.Expr) {
		// Swapping == and != already negates.
		if b, ok := e.(*ast.BinaryExpr); !ok || b.Op != token.EQL && b.Op != token.NEQ {
			text := source[files.Position(e.Pos()).Offset:files.Position(e.End()).Offset]
			add(operator, e.Pos(), e.End(), "!("+string(text)+")")
		}
	}
	remove := func(list []ast.Stmt) {
		for _, s := range list {
			_, removable := s.(*ast.IncDecStmt)
			if e, ok := s.(*ast.ExprStmt); ok {
				_, removable = e.X.(*ast.CallExpr)
			} else if a, ok := s.(*ast.AssignStmt); ok {
				removable = a.Tok != token.DEFINE
			}
			if removable {
				add("remove statement", s.Pos(), s.End(), "")
			}
		}
	}
	ast.PreorderStack(parsed, nil, func(n ast.Node, parents []ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			swap(n.Op, n.OpPos)
		case *ast.BranchStmt:
			swap(n.Tok, n.TokPos)
		case *ast.IfStmt:
			negate("negate if", n.Cond)
		case *ast.BasicLit:
			if n.Kind == token.INT {
				add("constant + 1", n.Pos(), n.End(), "("+n.Value+"+1)")
			}
		case *ast.BlockStmt:
			remove(n.List)
		case *ast.CaseClause:
			remove(n.Body)
		case *ast.CommClause:
			remove(n.Body)
		case *ast.ReturnStmt:
			for i, t := range resultTypes(parents) {
				switch {
				case i >= len(n.Results):
				case t == "bool":
					negate("negate result", n.Results[i])
				case t == "error" && types.ExprString(n.Results[i]) != "nil":
					add("no error", n.Results[i].Pos(), n.Results[i].End(), "nil")
				}
			}
		}
		return true
	})
	slices.SortStableFunc(sites, func(a, b site) int { return a.start - b.start })
	return sites, nil
}

// resultTypes returns the types of the innermost function's results.
func resultTypes(parents []ast.Node) (names []string) {
	for _, p := range slices.Backward(parents) {
		var results *ast.FieldList
		switch p := p.(type) {
		case *ast.FuncLit:
			results = p.Type.Results
		case *ast.FuncDecl:
			results = p.Type.Results
		default:
			continue
		}
		if results != nil {
			for _, field := range results.List {
				names = append(names, slices.Repeat([]string{types.ExprString(field.Type)}, max(1, len(field.Names)))...)
			}
		}
		break
	}
	return names
}

// draw returns the candidates of each mutant: the first that compiles is the mutant. Packages have mutants in
// proportion to their sites, and no site is drawn twice.
func draw(packages [][]site, count int, seed uint64) (mutants [][]site) {
	total, seen := len(slices.Concat(packages...)), 0
	for _, sites := range packages {
		seen += len(sites)
		ofPackage := make([][]site, count*seen/max(1, total)-len(mutants))
		for i, drawn := range rand.New(rand.NewPCG(seed, 0)).Perm(len(sites)) {
			if n := len(ofPackage); n > 0 {
				ofPackage[i%n] = append(ofPackage[i%n], sites[drawn])
			}
		}
		mutants = append(mutants, ofPackage...)
	}
	return mutants
}
