/** A fenced block of a Markdown page. */
export interface Block {
  /** The first word behind the fence: `sh`, `text`, `json` and so on. */
  readonly language: string;
  /** The second word: the name of the file that a reader is asked to write. */
  readonly file: string | undefined;
  /** Why nobody runs it here, from a comment `<!-- not run: … -->` right above it. */
  readonly notRun: string | undefined;
  /** The nearest heading above. */
  readonly heading: string;
  readonly line: number;
  readonly text: string;
}

/** The fenced blocks of a page, in order. A block inside a list loses the indentation of its fence. */
export function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = [];
  let heading = '';
  let notRun: string | undefined;
  let open: { indent: string; fence: string; block: Block; lines: string[] } | undefined;
  for (const [index, line] of markdown.split('\n').entries()) {
    if (open !== undefined) {
      if (line.trim() === open.fence) {
        blocks.push({ ...open.block, text: open.lines.join('\n') });
        open = undefined;
      } else {
        open.lines.push(line.startsWith(open.indent) ? line.slice(open.indent.length) : line);
      }
      continue;
    }
    const [, indent = '', fence, language = '', file] = /^( *)(```+)(\S*)(?: (\S+))?$/.exec(line) ?? [];
    if (fence !== undefined) {
      open = { indent, fence, lines: [], block: { language, file, notRun, heading, line: index + 1, text: '' } };
      notRun = undefined;
      continue;
    }
    heading = /^#+ (.*)$/.exec(line)?.[1] ?? heading;
    if (line.trim() !== '') notRun = /^\s*<!-- not run: (.+) -->$/.exec(line)?.[1];
  }
  return blocks;
}

/**
 * True if an output is what a page shows. `…` stands for any text within a line, and a line that is `…` alone for any number
 * of lines. Blanks at the end of a line do not count.
 */
export function isShown(shown: string, output: string): boolean {
  const lines = shown.trim().split('\n');
  const pattern = lines.map((line) => (line.trim() === '…' ? '(?:.*\n)*?' : `${ofLine(line)}[ \\t]*\n`)).join('');
  return new RegExp(`^${pattern}$`).test(`${output.trim()}\n`.replace(slowLines, ''));
}

/** What `check` says meanwhile on a machine that is slow. */
const slowLines = /^\d+ of \d+ checked; still checking .*\n/gm;

/** The same for an output that is still growing: true if it begins with what the page shows, or holds it between other lines. */
export function hasShown(shown: string, output: string): boolean {
  return isShown(`…\n${shown.trim()}\n…`, output);
}

const ofLine = (line: string): string =>
  line
    .trimEnd()
    .split('…')
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('.*');
