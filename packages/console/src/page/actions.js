import { postAction } from './api.js';
import { h, showToast } from './dom.js';

/** The actions that the key of this page allows. The gateway checks each action again. */
let allows = { sessions: false, drain: false };

/** Sets the allowed actions, before the views are created. */
export const setAllowedActions = (allowed) => {
  allows = allowed;
};

/** Creates the button of an action, which is hidden if the key does not allow the action. */
export const createActionButton = (scope, tag, props, text) =>
  h(tag, { type: 'button', hidden: !allows[scope], ...props }, text);

/** Asks for confirmation in a modal dialog. Escape means no. `isHarmless` is true if nothing is lost by a yes. */
export function confirm({ title, text, yes, isHarmless = false }) {
  return new Promise((resolve) => {
    let answer = false;
    const settle = (value) => () => {
      answer = value;
      dialog.close();
    };
    const dialog = h(
      'dialog',
      { 'aria-labelledby': 'dialog-title', 'aria-describedby': 'dialog-text' },
      h('h2', { id: 'dialog-title' }, title),
      h('p', { id: 'dialog-text' }, text),
      h(
        'div.buttons',
        {},
        h('button', { type: 'button', onclick: settle(false) }, 'Cancel'),
        h(isHarmless ? 'button.primary' : 'button.danger', { type: 'button', onclick: settle(true) }, yes),
      ),
    );
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(answer);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Runs an action after confirmation, and shows its outcome. Resolves with true if it was done. */
async function runConfirmed(question, path, body) {
  if (!(await confirm(question))) return false;
  try {
    showToast((await postAction(path, body)).message);
    return true;
  } catch (error) {
    showToast(`The action failed: ${error.message}`, true);
    return false;
  }
}

/** Ends a session. Its client gets an error for open requests and opens a new session. */
export const endSession = ({ server, session }) =>
  runConfirmed(
    {
      title: `End session ${session}?`,
      text: `Its open requests end with an error. Its process of “${server}” ends too, unless other sessions of the client use it.`,
      yes: 'End session',
    },
    'status/actions/end-session',
    { server, session },
  );

/** Cancels a task. Its client learns that it was cancelled. */
export const cancelTask = ({ task, server, tool }) =>
  runConfirmed(
    {
      title: `Cancel task ${task}?`,
      text: `Its call of ${tool ?? 'a tool'} at “${server}” is cancelled. Its client gets no result.`,
      yes: 'Cancel task',
    },
    'status/actions/cancel-task',
    { task },
  );

/**
 * Restarts all backends of a server. If it is down and has no process, a check is offered instead.
 * @param {() => Promise<void>} check
 */
export async function restartServer({ name, transport, condition, childCount }, check) {
  if (transport === 'stdio' && condition.state === 'down' && childCount === 0) {
    const question = {
      title: `No process of ${name} runs`,
      text: 'There is nothing to restart: the next session starts a process. A check starts one now, and says what it finds.',
      yes: 'Check',
      isHarmless: true,
    };
    if (await confirm(question)) await check();
    return;
  }
  await runConfirmed(
    {
      title: `Restart the processes of ${name}?`,
      text: 'Its sessions continue, each with a new process or connection. Requests in flight that cannot be repeated end with an error.',
      yes: 'Restart',
    },
    'status/actions/restart-server',
    { server: name },
  );
}

let drainedAt;

/** When this page has drained its instance, in milliseconds since 1970; undefined if it has not. */
export const timeOfDrain = () => drainedAt;

/** Another gateway has taken the place of the drained one. */
export const forgetDrain = () => {
  drainedAt = undefined;
};

/**
 * Drains and ends this instance.
 * @param {string} text what will happen
 */
export async function drainInstance(text) {
  const question = { title: 'Drain this instance?', text, yes: 'Drain and exit' };
  if (await runConfirmed(question, 'status/actions/drain', {})) drainedAt = Date.now();
}
