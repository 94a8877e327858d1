import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll } from 'vitest';
import { suiteNode } from '../conformance/suite.ts';
import { fixtureKinds, modernHttpKinds, type ServerKind } from '../integration/server-kinds.ts';
import { startGateway } from '../support/gateway.ts';
import { clientsFolder as folder, installClients } from './install-clients.ts';
import { type Arm, type Outcome, type Outcomes, testJudge } from './judge.ts';

const stepMs = 60_000;

/** The programs with a command line: each step is a process. `<url>` stands for the endpoint. */
const inspector = 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js';
const mcporter = 'node_modules/mcporter/dist/cli.js';
const commands: readonly (readonly [step: string, program: string, words: string])[] = [
  ['Inspector: list tools', inspector, '--cli <url> --transport http --method tools/list'],
  [
    'Inspector: call a tool',
    inspector,
    '--cli <url> --transport http --method tools/call --tool-name test_simple_text',
  ],
  [
    'Inspector: call a tool that fails',
    inspector,
    '--cli <url> --transport http --method tools/call --tool-name test_error_handling',
  ],
  ['Inspector: list resources', inspector, '--cli <url> --transport http --method resources/list'],
  [
    'Inspector: read a resource',
    inspector,
    '--cli <url> --transport http --method resources/read --uri test://static-text',
  ],
  ['Inspector: list prompts', inspector, '--cli <url> --transport http --method prompts/list'],
  [
    'Inspector: get a prompt',
    inspector,
    '--cli <url> --transport http --method prompts/get --prompt-name test_simple_prompt',
  ],
  ['mcporter: list tools', mcporter, 'list <url> --json --allow-http'],
  ['mcporter: call a tool', mcporter, 'call <url>.test_simple_text --allow-http'],
  ['mcporter: call a tool that fails', mcporter, 'call <url>.test_error_handling --allow-http'],
];

/** The libraries: each has a program that prints the answers to all of its steps. */
const libraries = [
  ['mcp-remote', 'mcp-remote.mjs'],
  ['AI SDK', 'ai-sdk.mjs'],
  ['LangChain', 'langchain.mjs'],
  ['LlamaIndex', 'llamaindex.mjs'],
  ['Mastra', 'mastra.mjs'],
  ['OpenAI Agents', 'openai-agents.mjs'],
] as const;

interface Answer {
  readonly code: number;
  readonly answer: string;
}

/** Everything that the clients print, by step. */
async function askAll(url: string): Promise<Map<string, string>> {
  const answers = new Map<string, string>();
  for (const [step, program, words] of commands) {
    const { code, answer } = await answerOf(program, words.replaceAll('<url>', url).split(' '), url);
    answers.set(step, `${answer}exit ${code}`);
  }
  for (const [client, program] of libraries) {
    const { answer } = await answerOf(program, [url], url);
    const results: Record<string, object> = JSON.parse(answer);
    for (const [step, result] of Object.entries(results)) answers.set(`${client}: ${step}`, JSON.stringify(result));
  }
  return answers;
}

/** The exit code of a program and what it prints, without what differs from run to run. Rejects if it prints nothing. */
async function answerOf(program: string, words: readonly string[], url: string): Promise<Answer> {
  const options = { cwd: folder, timeout: stepMs, maxBuffer: 1e8 };
  const { code, stdout } = await new Promise<{ code: number; stdout: string }>((resolve, reject) => {
    execFile(suiteNode, [join(folder, program), ...words], options, (error, out, errors) => {
      const exitCode = error === null ? 0 : error.code;
      if (typeof exitCode === 'number' && out !== '') resolve({ code: exitCode, stdout: out });
      else reject(new Error(`${program} ${words.join(' ')} prints no answer: ${errors}`, { cause: error }));
    });
  });
  const answer = stdout.replaceAll(url, '<url>').replaceAll(/"durationMs": \d+/g, '"durationMs": 0');
  return { code, answer };
}

beforeAll(installClients);

/** Each step passes if it has an answer, and through the gateway if it has the same answer as directly. */
function testClients(judge: string, directKind: ServerKind, kinds: readonly (readonly [string, ServerKind])[]): void {
  let expected = new Map<string, string>();
  const direct: Arm = {
    name: 'direct',
    async run() {
      const { args, stop } = await directKind.ready();
      expected = await askAll(args[0] ?? '').finally(stop);
      return outcomesOf(expected, (answer) => answer !== '');
    },
  };
  const arms = kinds.map(
    ([name, kind]): Arm => ({
      name,
      async run() {
        const { args, command, stop } = await kind.ready();
        const gateway = await startGateway({ args, command });
        const answers = await askAll(gateway.url);
        await gateway.stop();
        await stop();
        return outcomesOf(answers, (answer, step) => answer === expected.get(step));
      },
    }),
  );
  testJudge(judge, direct, arms);
}

function outcomesOf(
  answers: ReadonlyMap<string, string>,
  isRight: (answer: string, step: string) => boolean,
): Outcomes {
  const outcome = (answer: string, step: string): Outcome =>
    isRight(answer, step) ? { passed: 1, failed: [] } : { passed: 0, failed: ['another answer'] };
  return new Map([...answers].map(([step, answer]) => [step, outcome(answer, step)]));
}

const [stdio, http, both] = [
  ...['stdio', 'http'].map((transport) => fixtureKinds.find((kind) => kind.transport === transport)),
  modernHttpKinds.find(({ name }) => name.includes('both eras')),
];
if (stdio === undefined || http === undefined || both === undefined) throw new Error('A kind of server is gone');

testClients('Published clients, legacy server', http, [
  ['Streamable HTTP', http],
  ['STDIO', stdio],
]);
testClients('Published clients, server of both eras', both, [['Streamable HTTP', both]]);
