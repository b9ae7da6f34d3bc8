import { playAllIn } from './play.ts';

playAllIn('fetch');
