# The way to Python. Loading this package starts nothing: Python starts at the first call that needs it.

the <- new.env(parent = emptyenv())

environment_name <- "r-dpsurvey"

.onLoad <- function(libname, pkgname) {
  # Current reticulate takes a declaration of what is needed; the one of Debian 12 has no such function.
  declare <- get0("py_require", envir = asNamespace("reticulate"), mode = "function", inherits = FALSE)
  if (!is.null(declare)) declare(getOption("dpsurvey.requirement", "dpsurvey"))
  the$door <- reticulate::import(
    "dpsurvey.rdoor",
    delay_load = list(environment = environment_name, on_error = function(e) stop(no_python(e)))
  )
}

no_python <- function(e) {
  errorCondition(
    paste0(
      "the Python package dpsurvey cannot be loaded: ", conditionMessage(e),
      "\n  call dpsurvey::dp_install(), or point RETICULATE_PYTHON at a Python that has it, and restart R"
    ),
    class = c("dp_no_python", "dp_error")
  )
}

# Call a function of dpsurvey/rdoor.py. Its named errors and warnings become R's own.
door <- function(name, ...) {
  answer <- the$door[[name]](...)
  for (told in answer$warnings) warning(warningCondition(told$text, class = c(told$kind, "dp_warning")))
  if (!is.null(answer$error)) {
    stop(errorCondition(answer$error, class = c(answer$kind, "dp_error"), code = answer$code))
  }
  answer$value
}

#' Is the Python side there?
#'
#' @return `dp_available()` is `TRUE` where the Python package dpsurvey can be loaded. It starts Python.
#'   `dp_versions()` is a named character vector of versions.
#' @export
#' @examples
#' if (dp_available()) dp_versions()
dp_available <- function() {
  tryCatch({
    door("versions")
    TRUE
  }, error = function(e) FALSE)
}

#' @rdname dp_available
#' @export
dp_versions <- function() {
  c(R = as.character(getRversion()),
    reticulate = as.character(utils::packageVersion("reticulate")),
    unlist(door("versions")))
}

#' Make the Python environment
#'
#' Creates the virtual environment `r-dpsurvey` and installs the Python package dpsurvey there. Later sessions
#' find it by its name; restart R if Python is already running. Python 3.11 or newer is needed.
#'
#' @param source what pip installs: a package name, a wheel, or a folder with the sources.
#' @param envname name or path of the environment.
#' @param python path of the Python to use; `NULL` lets reticulate choose.
#' @return the path of the environment's Python, invisibly.
#' @export
#' @examples
#' \dontrun{
#' dp_install()
#' dp_install("path/to/dpsurvey") # from a clone
#' }
dp_install <- function(source = "dpsurvey", envname = environment_name, python = NULL) {
  if (file.exists(source)) source <- normalizePath(source)
  # R's own library path can hide the libraries (of TLS, say) that another Python was built with.
  library_path <- Sys.getenv("LD_LIBRARY_PATH", NA)
  Sys.unsetenv("LD_LIBRARY_PATH")
  on.exit(if (!is.na(library_path)) Sys.setenv(LD_LIBRARY_PATH = library_path))
  reticulate::virtualenv_create(envname, python = python)
  reticulate::virtualenv_install(envname, source, ignore_installed = FALSE)
  path <- reticulate::virtualenv_python(envname)
  message("dpsurvey is installed in ", path, if (reticulate::py_available()) "; restart R to use it")
  invisible(path)
}
