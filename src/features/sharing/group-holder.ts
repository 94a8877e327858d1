import type { ProcessHolder } from '../../core/backend/backend.ts';

/** A session of modern clients. It keeps its process until it ends, and no other session takes it. */
export class GroupHolder implements ProcessHolder {
  readonly isOver = false;
  readonly isLeft = false;
  readonly quietMs = Number.NEGATIVE_INFINITY;
  readonly answered = 0;

  onStart(): void {
    // The session counts its process itself.
  }

  release(): void {
    throw new Error('the process of a group is not given up');
  }

  expire(): void {
    throw new Error('the process of a group is not given up');
  }
}
