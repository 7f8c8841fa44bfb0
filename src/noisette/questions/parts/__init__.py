"""What several questions share; a question itself is a file of `noisette.questions`."""
