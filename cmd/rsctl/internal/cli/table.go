package cli

import (
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// cell is one field of a table.
type cell struct {
	text   string
	colour colour
}

// table is aligned with spaces; colours do not disturb the columns.
type table struct {
	head []string
	rows [][]cell
}

// row adds a row of plain fields.
func (t *table) row(fields ...string) {
	cells := make([]cell, len(fields))
	for i, f := range fields {
		cells[i] = cell{text: f}
	}
	t.rows = append(t.rows, cells)
}

// cells adds a row with colours.
func (t *table) cells(cells ...cell) { t.rows = append(t.rows, cells) }

// print writes the table with each line indented; no line ends in spaces.
func (t *table) print(c console, indent string) {
	head := make([]cell, len(t.head))
	for i, h := range t.head {
		head[i] = cell{h, dim}
	}
	rows := append([][]cell{head}, t.rows...)
	widths := columnWidths(rows)
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(c.line(indent, row, widths) + "\n")
	}
	_, _ = io.WriteString(c.w, b.String()) // a failed write is kept by the writer
}

func columnWidths(rows [][]cell) []int {
	var widths []int
	for _, row := range rows {
		for i, f := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(oneLine(f.text)))
		}
	}
	return widths
}

// line renders one row; its last cell goes on below itself when the terminal is
// too narrow for it.
func (c console) line(indent string, row []cell, widths []int) string {
	last := len(row) - 1
	for last > 0 && row[last].text == "" {
		last--
	}
	var b strings.Builder
	b.WriteString(indent)
	used := len(indent)
	for i, f := range row[:last] {
		text := oneLine(f.text)
		b.WriteString(c.paint(f.colour, text) + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+2))
		used += widths[i] + 2
	}
	text := oneLine(row[last].text)
	if c.columns-used >= minColumn {
		text = strings.TrimLeft(wrap(strings.Repeat(" ", used), text, c.columns), " ")
	}
	b.WriteString(c.paint(row[last].colour, text))
	return b.String()
}

// wrap breaks text into lines of at most width columns. The first line starts
// with first and the others with as many spaces.
func wrap(first, text string, width int) string {
	indent := strings.Repeat(" ", utf8.RuneCountInString(first))
	var b strings.Builder
	b.WriteString(first)
	col := len(indent)
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case col+1+n > width:
			b.WriteString("\n" + indent)
			col = len(indent)
		default:
			b.WriteString(" ")
			col++
		}
		b.WriteString(word)
		col += n
	}
	return b.String()
}

// plural renders a count with its noun.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return itoa(n) + " " + one + "s"
}

func itoa(n int) string { return strconv.Itoa(n) }
