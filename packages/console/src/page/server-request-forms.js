import { h, setText } from './dom.js';
import { createSchemaForm } from './schema-form.js';

/** The capabilities that the playground declares, because a person answers these requests. */
export const clientCapabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };

/** The JSON-RPC error for a request that the person refuses (2025-11-25, client/sampling, "Error Handling"). */
const refusedCode = -1;

/**
 * Asks the person for the answer to a request of the server, and resolves with the result. Rejects with the error that
 * the server gets.
 */
export function answerByHand(container, { method, params }) {
  switch (method) {
    case 'ping':
      return Promise.resolve({});
    case 'elicitation/create':
      return (params.mode ?? 'form') === 'form' ? elicit(container, params) : Promise.reject(unknownMethod());
    case 'sampling/createMessage':
      return sample(container, params);
    case 'roots/list':
      return listRoots(container);
    default:
      return Promise.reject(unknownMethod());
  }
}

const unknownMethod = () => Object.assign(new Error('Method not found'), { code: -32601 });

const refused = () => Object.assign(new Error('The user rejected the request'), { code: refusedCode });

/** 2025-11-25, client/elicitation */
function elicit(container, { message, requestedSchema }) {
  const fields = createSchemaForm(requestedSchema);
  return ask(container, {
    title: 'The server requests input',
    parts: [h('p', { dir: 'auto' }, message), fields.element],
    answers: { Cancel: () => ({ action: 'cancel' }), Decline: () => ({ action: 'decline' }) },
    read: () => ({ action: 'accept', content: fields.read() }),
  });
}

/** 2025-11-25, client/sampling: the person plays the model. */
function sample(container, { systemPrompt, messages = [] }) {
  const answer = h('textarea', { id: 'sample-answer', rows: '4', required: true });
  const conversation = [
    ...(systemPrompt === undefined ? [] : [`system: ${systemPrompt}`]),
    ...messages.map(({ role, content }) => `${role}: ${[content].flat().map(textOf).join('\n')}`),
  ];
  return ask(container, {
    title: 'The server asks for a message from the model',
    parts: [
      h('pre', { tabindex: '0', dir: 'auto' }, conversation.join('\n\n')),
      h('div.field', {}, h('label', { for: 'sample-answer' }, 'Answer from the model'), answer),
    ],
    answers: { Decline: () => refused() },
    read: () => ({
      role: 'assistant',
      content: { type: 'text', text: answer.value },
      model: 'a person in the playground',
      stopReason: 'endTurn',
    }),
  });
}

const textOf = (content) => (content?.type === 'text' ? content.text : JSON.stringify(content));

/** 2025-11-25, client/roots */
function listRoots(container) {
  const roots = h('textarea', { id: 'roots', rows: '3', spellcheck: 'false', placeholder: 'file:///home/me/project' });
  return ask(container, {
    title: 'The server asks for the roots of the client',
    parts: [h('div.field', {}, h('label', { for: 'roots' }, 'One URI for each line'), roots)],
    answers: { Decline: () => refused() },
    read: () => ({
      roots: roots.value
        .split('\n')
        .map((line) => line.trim())
        .filter((uri) => uri !== '')
        .map((uri) => ({ uri })),
    }),
  });
}

let asked = 0;

/**
 * Shows a form until the person answers.
 * @param {{ title: string, parts: Node[], answers: Record<string, () => object | Error>, read(): object }} question
 *   `answers` are the buttons beside Answer; `read` throws an error with a sentence for the person
 */
function ask(container, { title, parts, answers, read }) {
  asked += 1;
  const id = `asked-${asked}`;
  return new Promise((resolve, reject) => {
    const wrong = h('p.bad', { role: 'alert' });
    const settle = (answer) => {
      form.remove();
      if (answer instanceof Error) reject(answer);
      else resolve(answer);
    };
    const buttons = Object.entries(answers).map(([label, answer]) =>
      h('button', { type: 'button', onclick: () => settle(answer()) }, label),
    );
    const form = h(
      'form.card.asked',
      { 'aria-labelledby': id },
      h('h2', { id, tabindex: '-1' }, title),
      ...parts,
      wrong,
      h('div.buttons', {}, ...buttons, h('button.primary', { type: 'submit' }, 'Answer')),
    );
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      try {
        settle(read());
      } catch (error) {
        setText(wrong, error.message);
      }
    });
    // The newest one is on top: an earlier one can stay open.
    container.prepend(form);
    form.querySelector('h2').focus();
  });
}
