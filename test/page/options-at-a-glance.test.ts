import { readFileSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import { root } from '../support/gateway.ts';
import { closeBrowser, openBrowser } from './browser.ts';

afterAll(closeBrowser);

const cellsOf = (line: string): string[] => line.split(/(?<!\\)\|/).slice(1, -1);
const rowOf = (cells: readonly string[]): string =>
  `<tr>${cells.map((cell) => `<td>${cell.replaceAll('`', '').replaceAll('\\|', '|')}</td>`).join('')}</tr>`;

/** The page as a browser prints it: headings, texts and tables. */
function htmlOf(markdown: string): string {
  const lines = markdown.split('\n').map((line) => {
    if (line.startsWith('| ---')) return '';
    if (line.startsWith('|')) return rowOf(cellsOf(line));
    return line.startsWith('#') ? `<h2>${line.replace(/^#+ /, '')}</h2>` : line && `<p>${line}</p>`;
  });
  const body = lines.join('\n').replace(/(?:<tr>.*<\/tr>\n+)+/g, (rows) => `<table>${rows}</table>`);
  const style =
    'body{font:9pt/1.15 sans-serif} h2{font-size:11pt;margin:3pt 0} p{margin:2pt 0} table{border-collapse:collapse} td{padding:0 6pt 1pt 0;vertical-align:top}';
  return `<!doctype html><style>${style}</style>${body}`;
}

test('all options that are not advanced fit two printed pages, at 9 pt on A4', async () => {
  const markdown = readFileSync(`${root}docs/reference/options.md`, 'utf8');
  expect(markdown.match(/^\| `/gm)?.length).toBeGreaterThan(60);
  const page = await (await openBrowser()).newPage();
  await page.setContent(htmlOf(markdown));
  const margin = { top: '12mm', bottom: '12mm', left: '12mm', right: '12mm' };
  const pdf = (await page.pdf({ format: 'A4', margin })).toString('latin1');
  expect(pdf.match(/\/Type\s*\/Page\b/g)).toHaveLength(2);
});
