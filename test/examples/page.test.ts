import { describe, expect, it } from 'vitest';
import { blocksOf, hasShown, isShown } from './page.ts';

const page = `# Title

1. Write \`a.json\`:

   \`\`\`json a.json
   {
     "a": 1
   }
   \`\`\`

## Start

<!-- not run: needs a cluster -->
\`\`\`sh
kubectl apply
\`\`\`

\`\`\`text
done
\`\`\`
`;

describe('blocks of a page', () => {
  it('have a language, a file, a heading, and no indentation of a list', () => {
    expect(blocksOf(page)).toEqual([
      { language: 'json', file: 'a.json', notRun: undefined, heading: 'Title', line: 5, text: '{\n  "a": 1\n}' },
      { language: 'sh', file: undefined, notRun: 'needs a cluster', heading: 'Start', line: 14, text: 'kubectl apply' },
      { language: 'text', file: undefined, notRun: undefined, heading: 'Start', line: 18, text: 'done' },
    ]);
  });
});

describe('an output', () => {
  it.each([
    { shown: 'a\nb', output: 'a\nb\n', same: true },
    { shown: 'a\nb', output: 'a\nc\n', same: false },
    { shown: 'a\nb', output: 'a\nb\nc\n', same: false },
    { shown: 'key …', output: 'key mcpgw_1', same: true },
    { shown: 'a\n…\nd', output: 'a\nb\nc\nd', same: true },
    { shown: 'a\n…\nd', output: 'a\nd', same: true },
    { shown: 'a.c', output: 'abc', same: false },
  ])('$output is $same for $shown', ({ shown, output, same }) => {
    expect(isShown(shown, output)).toBe(same);
  });

  it('may have other lines before and behind while it grows', () => {
    expect(hasShown('Ready:\n  demo …', 'log\nReady:\n  demo http://…\nlog')).toBe(true);
    expect(hasShown('Ready:\n  demo …', 'log\nReady:\n')).toBe(false);
  });
});
